"""Batches that a function of the file takes apart: ``x, y = unpack(batch)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def unpacked(part: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression:
    """Return what a function of the file is given alone; of anything else itself."""
    is_made = isinstance(part, cst.Call) and len(part.args) == 1 and isinstance(part.func, cst.Name)
    if not is_made or not isinstance(part, cst.Call):
        return part
    is_own = isinstance(evaluator.definitions.definition(part.func), cst.FunctionDef)
    return part.args[0].value if is_own and not part.args[0].star else part
