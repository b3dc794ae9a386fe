"""Functions of other libraries than NumPy that give arrays of it."""

from __future__ import annotations

_CV2 = "imread imdecode cvtColor resize flip rotate warpAffine warpPerspective GaussianBlur copyMakeBorder bitwise_not"
_LIBROSA = "feature.melspectrogram feature.mfcc power_to_db amplitude_to_db stft"

ARRAYS = frozenset(
    (
        *(f"cv2.{name}" for name in _CV2.split()),
        *(f"librosa.{name}" for name in _LIBROSA.split()),
        *(f"{module}.imread" for module in ("imageio", "imageio.v2", "imageio.v3", "skimage.io", "matplotlib.image")),
        "skimage.transform.resize",
    )
)
"""Those that give one."""

SOUNDS = frozenset(("librosa.load", "librosa.core.load", "soundfile.read"))
"""Those that give one, and the sampling rate."""

BEFORE_DESTINATION = {
    "cv2.bitwise_not": 1,
    **dict.fromkeys((f"cv2.{name}" for name in "cvtColor resize flip rotate imread imdecode".split()), 2),
    **dict.fromkeys((f"cv2.{name}" for name in "warpAffine warpPerspective GaussianBlur".split()), 3),
    "cv2.copyMakeBorder": 6,
}
"""How many arguments stand before ``dst``, an array into which they write what they give, or what else they take."""

LIBRARIES = tuple(sorted({name.partition(".")[0] for name in ARRAYS | SOUNDS}))
"""The libraries that they belong to."""
