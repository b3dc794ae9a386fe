"""Functions that limit the gradients, between the backward pass and the step of other files."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.training.step_order import CLIPS
from torchlint.syntax.calls import identifier


def clips_gradients(function: cst.FunctionDef, calls: Iterable[cst.Call], evaluator: Evaluator) -> bool:
    """Return whether a function that the file does not call limits the gradients, by its own calls or its name."""
    if evaluator.is_called(function):
        return False
    own = (call for call in calls if identifier(call.func).startswith("clip_grad_"))
    is_named = function.name.value.lstrip("_").startswith("clip_grad")
    return is_named or any(evaluator.names.qualified(call.func) in CLIPS for call in own)
