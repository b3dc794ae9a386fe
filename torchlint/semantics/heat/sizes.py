"""Numbers that are sizes of batches and tensors, which count no passes: ``x.size(0) % n_gpus``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import method_call

_SIZED = (Kind.TENSOR, Kind.BATCH)


def is_of_tensor(number: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a number is the size of a batch or tensor, which counts no passes: ``x.size(0)``, ``len(x)``."""
    if isinstance(number, cst.Name):
        bindings = evaluator.flow.definitions(number)
        values = [each.part or each.value for each in bindings if each.kind is BindingKind.ASSIGNMENT]
        return bool(values) and len(values) == len(bindings) and all(_is_size(value, evaluator) for value in values)
    return _is_size(number, evaluator)


def _is_size(value: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    if isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, cst.Attribute):
        return value.attr.value == "shape"
    sized = method_call(value, "size", "numel")
    if not isinstance(value, cst.Call) or any(given.star for given in value.args):
        return False
    if sized is not None:
        return bool(value.args) or evaluator.value(sized.value).kind in _SIZED
    is_length = evaluator.names.qualified(value.func) == "builtins.len" and len(value.args) == 1
    return is_length and evaluator.value(value.args[0].value).kind in _SIZED
