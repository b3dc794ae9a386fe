"""Functions that read one file, and datasets whose items are files of their own."""

from __future__ import annotations

DECODERS = frozenset(
    (
        "PIL.Image.open cv2.imread cv2.imdecode imageio.imread imageio.v2.imread imageio.v3.imread skimage.io.imread "
        "matplotlib.image.imread matplotlib.pyplot.imread torchvision.io.read_image torchvision.io.decode_image "
        "torchvision.io.decode_jpeg torchvision.io.decode_png torchvision.io.read_video torchvision.datasets.folder"
        ".default_loader torchaudio.load librosa.load librosa.core.load soundfile.read scipy.io.wavfile.read "
        "nibabel.load pydicom.dcmread numpy.load"
    ).split()
)
READERS = DECODERS | {"builtins.open", "torch.load", "pandas.read_csv", "pandas.read_parquet", "gzip.open"}
# Datasets of torchvision that open a file for each item.
FOLDERS = frozenset(
    f"torchvision.datasets.{name}"
    for name in (
        "ImageFolder DatasetFolder ImageNet CocoDetection CocoCaptions VOCDetection VOCSegmentation Flickr8k Flickr30k "
        "Places365 Cityscapes CelebA Caltech101 Caltech256 Food101 OxfordIIITPet StanfordCars FGVCAircraft DTD SUN397 "
        "Flowers102 Kinetics UCF101 HMDB51 WIDERFace Country211 EuroSAT Kitti"
    ).split()
)
