"""Arrays that other libraries than NumPy make: pictures that are read or cut, sounds."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.arrays import ARRAYS, SOUNDS
from torchlint.semantics.tensors.array import Array
from torchlint.semantics.tensors.array_dtypes import OTHER


def given_by(call: cst.CSTNode | None, path: tuple[int, ...], evaluator: Evaluator) -> Array | None:
    """Return the array that a call gives at a place of what it gives: ``samples, rate = librosa.load(path)``."""
    name = evaluator.names.qualified(call.func) if isinstance(call, cst.Call) else None
    is_one = name in ARRAYS if not path else name in SOUNDS and path == (0,)
    return Array(Evidence.INFERRED, dtypes=OTHER) if is_one else None
