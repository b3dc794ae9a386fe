"""Tensors that are made on the spot: nothing else holds them, and no graph led to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.tables.torch_api import CUDA_CONSTRUCTORS, DTYPE_CASTS, LEGACY_CONSTRUCTORS, SIZED_FACTORIES
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

COPYING = frozenset(("detach", "clone", "data"))
"""Methods and attributes that give another tensor."""

_METHODS = COPYING | frozenset(DTYPE_CASTS) | {"cuda", "cpu", "to", "type", "contiguous"}  # views resist detach_()
_LEGACY = LEGACY_CONSTRUCTORS | CUDA_CONSTRUCTORS
_OF_TENSORS = _LEGACY | {"torch.normal"}  # the graph of their arguments goes on in what they make
_HANDS_BACK = frozenset(("torch.as_tensor", "torch.asarray"))  # a tensor, where they are given one
_MAKERS = SIZED_FACTORIES | _LEGACY | {"torch.tensor", "torch.from_numpy"}
_DATA = (cst.List, cst.Tuple, cst.ListComp)


def steps_of(tensor: cst.BaseExpression) -> tuple[frozenset[str], cst.BaseExpression]:
    """Return what makes a tensor of the same class of another one, and the expression that it starts from."""
    steps: set[str] = set()
    while True:
        step = _step(tensor)
        if step is None:
            return frozenset(steps), tensor
        steps.add(step.attr.value)
        tensor = step.value


def _step(tensor: cst.BaseExpression) -> cst.Attribute | None:
    inner = tensor.func if isinstance(tensor, cst.Call) else tensor
    names = ("data",) if inner is tensor else _METHODS
    return inner if isinstance(inner, cst.Attribute) and inner.attr.value in names else None


def is_made(tensor: cst.BaseExpression, model: Model) -> bool:
    """Return whether an expression makes a plain tensor that nothing else holds, and hands it through such steps."""
    step = _step(tensor)
    if step is not None:
        moves = isinstance(tensor, cst.Call) and step.attr.value == "to"
        return is_made(step.value, model) and not (moves and _may_follow_a_tensor(tensor, model))
    if not isinstance(tensor, cst.Call) or model.callee(tensor) not in _MAKERS or may_hold_a_graph(tensor, model):
        return False
    return "out" not in model.arguments(tensor).named and not model.arguments(tensor).open


def may_hold_a_graph(call: cst.BaseExpression, model: Model) -> bool:
    """Return whether a call makes a tensor that can be one that it is given, or go on with the graph of it.

    So can what a function is given: who calls it in this file is not all who may.
    """
    if isinstance(call, cst.Name):
        return model.value(call).origin is not Origin.BATCH and _is_given(call, model)
    if not isinstance(call, cst.Call):
        return False
    if model.callee(call) in _HANDS_BACK and call.args:
        return model.value(call.args[0].value).kind not in (Kind.NDARRAY, Kind.NUMBER)
    if model.callee(call) not in _OF_TENSORS:
        return False
    values = [a.value for a in call.args if a.keyword is None or a.keyword.value != "device"]
    if model.callee(call) in _LEGACY:
        return len(values) == 1 and not _is_data(values[0], model)
    return not all(isinstance(literal(value), (int, float)) for value in values[:2])


def _is_given(name: cst.Name, model: Model) -> bool:
    """Whether a name is a parameter of a function, or an item of one."""
    for binding in model.reaching(name):
        items = binding.value if binding.kind is BindingKind.ITERATION else None
        if binding.kind is BindingKind.PARAMETER or (isinstance(items, cst.Name) and _is_given(items, model)):
            return True
    return False


def _is_data(value: cst.BaseExpression, model: Model) -> bool:
    return isinstance(value, _DATA) or model.constructors.is_integer(value)


def _may_follow_a_tensor(move: cst.BaseExpression, model: Model) -> bool:
    """Whether ``.to()`` may be given a tensor, whose class the result has then."""
    arguments = move.args if isinstance(move, cst.Call) else ()
    return any(argument.star or _may_be_a_tensor(argument, model) for argument in arguments)


def _may_be_a_tensor(argument: cst.Arg, model: Model) -> bool:
    if argument.keyword is not None:
        return argument.keyword.value == "other"
    return model.value(argument.value).kind not in (Kind.DTYPE, Kind.DEVICE, Kind.STRING, Kind.NUMBER)
