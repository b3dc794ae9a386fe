"""Arrays that other libraries than NumPy make: pictures that are read or cut, sounds."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.arrays import ARRAYS, BEFORE_DESTINATION, SOUNDS
from torchlint.semantics.tensors.array import Array
from torchlint.semantics.tensors.array_dtypes import OTHER
from torchlint.syntax.calls import bind


def given_by(call: cst.CSTNode | None, path: tuple[int, ...], evaluator: Evaluator) -> Array | None:
    """Return the array that a call gives at a place of what it gives: ``samples, rate = librosa.load(path)``."""
    name = evaluator.names.qualified(call.func) if isinstance(call, cst.Call) else None
    is_one = name in ARRAYS if not path else name in SOUNDS and path == (0,)
    if not is_one or not isinstance(call, cst.Call) or _fills_another(call, name or ""):
        return None
    return Array(Evidence.INFERRED, dtypes=OTHER)


def _fills_another(call: cst.Call, name: str) -> bool:
    """Whether a function is given an array to write to, which the next call may write to again."""
    placed = sum(argument.keyword is None for argument in call.args)
    given = bind(call.args)
    is_placed = placed > BEFORE_DESTINATION.get(name, placed)
    return is_placed or not (given.absent("dst") and given.absent("out"))
