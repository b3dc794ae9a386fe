"""What objects of classes of the file hand out one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def given_next(value: Value, evaluator: Evaluator) -> Value:
    """Return what ``next(x)`` gives: of an object the tensors, or the batch, that its ``__next__`` returns."""
    found = value.iterated()
    if found.known or value.kind is not Kind.INSTANCE or not isinstance(value.definition, cst.ClassDef):
        return found
    method = evaluator.definitions.method(value.definition, "__next__")
    returned = evaluator.returned(method) if method is not None else UNKNOWN
    return returned if _holds_tensors(returned) else found


def _holds_tensors(value: Value) -> bool:
    """Whether a value is a batch or a tensor, or holds one: anything else says less than the names around it."""
    held = value.elements or ((value.element,) if value.element is not None else ())
    return value.is_tensor or value.kind is Kind.BATCH or any(map(_holds_tensors, held))
