"""Functions that read pictures and sound, of libraries that many programs use."""

from __future__ import annotations

READERS = frozenset(
    (
        "PIL.Image.open",
        "Image.open",
        "cv2.imread",
        "cv2.VideoCapture",
        "imageio.imread",
        "imageio.v2.imread",
        "imageio.v3.imread",
        "skimage.io.imread",
        "scipy.misc.imread",
        "matplotlib.image.imread",
        "matplotlib.pyplot.imread",
        "torchvision.io.read_image",
        "torchvision.io.decode_image",
        "torchvision.io.read_video",
        "torchaudio.load",
        "librosa.load",
        "librosa.core.load",
        "soundfile.read",
        "scipy.io.wavfile.read",
    )
)
"""What gives the content of a file, or of a camera."""

NAMES_OF_READERS = frozenset(name.rpartition(".")[2] for name in READERS)
