"""Batches that the host puts together out of arrays: ``torch.stack([torch.from_numpy(data[i]) for i in k])``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tensors.pinned import KEEPING
from torchlint.semantics.values import Device, Kind, Origin
from torchlint.syntax.calls import literal, method_call

_TENSOR_JOINS = frozenset(f"torch.{name}" for name in "stack cat concat concatenate hstack vstack".split())
_ARRAY_JOINS = frozenset(f"numpy.{name}" for name in "stack concatenate hstack vstack".split())
_TAKES_OVER = frozenset(("torch.from_numpy", "torch.as_tensor"))
_COPIES = _TAKES_OVER | {"torch.tensor"}
_MAX_DEPTH = 8


def assembled(tensor: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> cst.Call | None:
    """Return the call that joins the items of a batch, where a tensor is one that the host has made of arrays."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(tensor, cst.Name):
        value = _only_value(tensor, evaluator)
        return assembled(value, evaluator, depth + 1) if value is not None else None
    kept = method_call(tensor, *KEEPING)
    if kept is not None and evaluator.names.qualified(kept) is None:
        return assembled(kept.value, evaluator, depth + 1)
    if not isinstance(tensor, cst.Call) or not tensor.args:
        return None
    name, given = evaluator.names.qualified(tensor.func), tensor.args[0].value
    joins = name in _TENSOR_JOINS and _is_cut(given, evaluator)
    return tensor if joins or (name in _TAKES_OVER and _joins_arrays(given, evaluator, depth + 1)) else None


def _only_value(name: cst.Name, evaluator: Evaluator) -> cst.BaseExpression | None:
    """What a variable has been assigned, None where that is not certain."""
    bindings = evaluator.flow.definitions(name)
    is_one = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and not bindings[0].path
    value = bindings[0].value if is_one else None
    return value if isinstance(value, cst.BaseExpression) else None


def _is_cut(parts: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether tensors to be joined are made of arrays, one by one, or cut out of a tensor of the host."""
    parts = _written(parts, evaluator)
    if not isinstance(parts, (cst.ListComp, cst.GeneratorExp)):
        return False
    part = parts.elt
    while (kept := method_call(part, *KEEPING)) is not None:
        part = kept.value
    if isinstance(part, cst.Subscript):
        value = evaluator.value(part.value)
        is_whole = value.is_tensor and value.device is Device.CPU and value.origin is not Origin.BATCH
        return is_whole and literal(part.slice[0].slice) is None
    name = evaluator.names.qualified(part.func) if isinstance(part, cst.Call) else None
    if not isinstance(part, cst.Call) or not part.args or name not in _COPIES:
        return False
    return name == "torch.from_numpy" or evaluator.value(part.args[0].value).kind is Kind.NDARRAY


def _joins_arrays(array: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    """Whether an array is joined out of others, one for each item."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(array, cst.Name):
        value = _only_value(array, evaluator)
        return value is not None and _joins_arrays(value, evaluator, depth + 1)
    cast = method_call(array, "astype", "copy", "reshape", "transpose")
    if cast is not None and evaluator.names.qualified(cast) is None:
        return _joins_arrays(cast.value, evaluator, depth + 1)
    if not isinstance(array, cst.Call) or not array.args or evaluator.names.qualified(array.func) not in _ARRAY_JOINS:
        return False
    return isinstance(_written(array.args[0].value, evaluator), (cst.ListComp, cst.GeneratorExp))


def _written(parts: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression:
    """What a variable holds, where it has one value, otherwise the expression itself."""
    value = _only_value(parts, evaluator) if isinstance(parts, cst.Name) else None
    return value if value is not None else parts
