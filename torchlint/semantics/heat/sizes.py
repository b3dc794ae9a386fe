"""Numbers that are sizes of batches, which count no passes: ``x.size(0) % n_gpus``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import method_call

_MOVES = ("to", "cuda")


def is_of_batch(number: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a number is the size of a batch, which counts no passes: ``x.size(0)``, ``len(x)``."""
    if isinstance(number, cst.Name):
        bindings = evaluator.flow.definitions(number)
        values = [each.part or each.value for each in bindings if each.kind is BindingKind.ASSIGNMENT]
        return bool(values) and len(values) == len(bindings) and all(_is_size(value, evaluator) for value in values)
    return _is_size(number, evaluator)


def _is_size(value: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    if isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, cst.Attribute):
        return value.attr.value == "shape" and _is_batch(value.value, evaluator)
    sized = method_call(value, "size", "numel")
    if sized is not None:
        return _is_batch(sized.value, evaluator)
    if not isinstance(value, cst.Call) or len(value.args) != 1:
        return False
    is_length = evaluator.names.qualified(value.func) == "builtins.len"
    return is_length and _is_batch(value.args[0].value, evaluator)


def _is_batch(value: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a value is what a loader gives, moved perhaps: what is picked out of it differs in size."""
    bindings = evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
    given = [each.kind is BindingKind.ITERATION or method_call(each.part, *_MOVES) is not None for each in bindings]
    known = evaluator.value(value)
    return bool(given) and all(given) and (known.kind is Kind.BATCH or known.origin is Origin.BATCH)
