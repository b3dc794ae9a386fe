"""The activation that a value went through last, and the losses that want none, or another one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_FUNCTIONS = MappingProxyType(
    {
        f"{home}.{name}": name
        for home in ("torch", "torch.nn.functional", "torch.special")
        for name in ("softmax", "log_softmax", "sigmoid", "logsigmoid")
    }
    | {"torch.special.expit": "sigmoid"}
)
_LAYERS = MappingProxyType(
    {
        "torch.nn.Softmax": "softmax",
        "torch.nn.Softmax2d": "softmax",
        "torch.nn.LogSoftmax": "log_softmax",
        "torch.nn.Sigmoid": "sigmoid",
        "torch.nn.LogSigmoid": "logsigmoid",
    }
)
_LOSSES = MappingProxyType(
    {
        "torch.nn.functional.cross_entropy": "cross_entropy",
        "torch.nn.CrossEntropyLoss": "cross_entropy",
        "torch.nn.functional.nll_loss": "nll_loss",
        "torch.nn.NLLLoss": "nll_loss",
        "torch.nn.functional.binary_cross_entropy": "binary_cross_entropy",
        "torch.nn.BCELoss": "binary_cross_entropy",
        "torch.nn.functional.binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
        "torch.nn.BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    }
)
_NAMES = frozenset(name.rpartition(".")[2] for name in _LOSSES)
_LOSS_CLASSES = tuple(last for name in _LOSSES if (last := name.rpartition(".")[2]).endswith("Loss"))
_SAME_VALUES = ("squeeze", "unsqueeze", "view", "reshape", "flatten", "contiguous", "float", "to", "cuda", "view_as")
_SEQUENTIAL = "torch.nn.Sequential"
_DEPTH = 8


class Activation(NamedTuple):
    """The last activation of a value."""

    name: str
    call: cst.Call
    """The call that applies it, or makes the layer that does."""

    evidence: Evidence
    owner: cst.ClassDef | None = None
    """The module class whose forward pass ends with it, if that is where it was found."""

    direct: bool = True
    """Whether the expression itself is the call."""


class Fed(NamedTuple):
    """What a loss is given to judge."""

    loss: str
    """The name of the function of ``torch.nn.functional``."""

    predictions: cst.BaseExpression
    is_function: bool


def fed(call: cst.Call, model: Model) -> Fed | None:
    """Return what a call of a loss is given, None for any other call."""
    if len(call.args) < 2:
        return None
    name = model.qualified_name(call.func) if model.calls_by_name.may_be(call, _NAMES) else None
    is_function = name is not None and name in _LOSSES
    if not is_function and model.mentions(*_LOSS_CLASSES):
        value = model.value(call.func)
        name = value.name if value.kind is Kind.MODULE and value.evidence > Evidence.NAMED else None
    loss = _LOSSES.get(name or "")
    given = model.arguments(call, ("input", "target")).get("input") if loss is not None else None
    return Fed(loss, given, is_function) if loss is not None and given is not None else None


def activation(expression: cst.CSTNode | None, model: Model, depth: int = _DEPTH) -> Activation | None:
    """Return the activation that an expression's value went through last, None where that is not certain."""
    if depth == 0:
        return None
    if isinstance(expression, cst.Name):
        found = model.reaching(expression)
        if len(found) != 1 or found[0].kind is not BindingKind.ASSIGNMENT or found[0].path:
            return None
        return _indirect(activation(found[0].value, model, depth - 1))
    if not isinstance(expression, cst.Call):
        return None
    kept = method_call(expression, *_SAME_VALUES)
    if kept is not None and model.qualified_name(expression.func) is None:
        return _indirect(activation(kept.value, model, depth - 1))
    name = _FUNCTIONS.get(model.callee(expression) or "")
    if name is not None:
        return Activation(name, expression, Evidence.PROVEN)
    method = method_call(expression, "softmax", "log_softmax", "sigmoid")
    if method is not None and model.value(method.value).is_tensor:
        return Activation(method.attr.value, expression, model.value(method.value).evidence)
    return _of_module(expression, model, depth)


def _of_module(call: cst.Call, model: Model, depth: int) -> Activation | None:
    value = model.value(call.func)
    if value.kind is not Kind.MODULE:
        return None
    if value.name is not None and value.name in _LAYERS:
        return Activation(_LAYERS[value.name], call, value.evidence)
    if isinstance(value.definition, cst.ClassDef):
        return _of_class(value.definition, value.evidence, model, depth)
    made = _constructor(call.func, model)
    return _of_sequence(made, model) if made is not None else None


def _of_class(class_def: cst.ClassDef, evidence: Evidence, model: Model, depth: int) -> Activation | None:
    """Return the activation with which the forward pass of a class ends, on every way through it."""
    forward = model.definitions.method(class_def, "forward")
    returned = model.definitions.results(forward) if forward is not None else []
    found = [activation(value, model, depth - 1) for value in returned]
    first = found[0] if found else None
    if first is None or any(other is None or other.name != first.name for other in found):
        return None
    return first._replace(evidence=min(evidence, Evidence.INFERRED), owner=class_def, direct=False)


def _of_sequence(made: cst.Call, model: Model) -> Activation | None:
    """Return the activation that is the last layer of an `nn.Sequential`, also in one that is its last part."""
    while model.qualified_name(made.func) == _SEQUENTIAL and made.args and not made.args[-1].star:
        last = made.args[-1].value
        if not isinstance(last, cst.Call):
            return None
        name = _LAYERS.get(model.qualified_name(last.func) or "")
        if name is not None:
            return Activation(name, last, Evidence.INFERRED, direct=False)
        made = last
    return None


def _constructor(module: cst.BaseExpression, model: Model) -> cst.Call | None:
    """Return the call that makes a module, if its name or attribute gets no other; moving it makes none."""
    values: list[cst.BaseExpression | None] = []
    if isinstance(module, cst.Name):
        values = [None if binding.path else binding.value for binding in model.bindings(module)]
    elif isinstance(module, cst.Attribute) and isinstance(module.value, cst.Name):
        owner = model.definitions.receiver(module.value)
        if owner is not None:
            found = model.definitions.attribute(owner, module.attr.value)
            values = [None if binding.path else binding.value for binding in found]
    made = [_unmoved(value) for value in values]
    others = [value for value in made if not (value is not None and identifier(value) == identifier(module) != "")]
    return others[0] if len(others) == 1 and isinstance(others[0], cst.Call) else None


def _unmoved(module: cst.BaseExpression | None) -> cst.BaseExpression | None:
    while (moved := method_call(module, "to", "cuda", "eval", "train")) is not None:
        module = moved.value
    return module


def _indirect(found: Activation | None) -> Activation | None:
    return found._replace(direct=False) if found is not None else None
