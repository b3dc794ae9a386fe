"""What objects hand out one by one, also those of classes of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def handed_out(value: Value, evaluator: Evaluator) -> Value:
    """Return what one step of an iteration gives: of an object whatever its ``__next__`` returns."""
    found = value.iterated()
    if found.known or value.kind is not Kind.INSTANCE or not isinstance(value.definition, cst.ClassDef):
        return found
    method = evaluator.definitions.method(value.definition, "__next__")
    return evaluator.returned(method) if method is not None else found
