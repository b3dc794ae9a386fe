"""Sizes: whether an expression is a plain number such as one, and how many of them a tensor has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal, method_call

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DEPTH = 6
_SAME_RANK = ("transpose", "contiguous", "clone", "float", "half", "to", "type_as", "swapaxes", "softmax")
_WITH_MATRIX = ("torch.nn.Embedding", "torch.nn.Linear", "torch.nn.EmbeddingBag")
_OF_SIZES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn"))
_NUMBERS = ("builtins.len", "builtins.int", "builtins.float")


def is_number(expression: cst.BaseExpression | None, model: Model, depth: int = _DEPTH) -> bool:
    """Return whether an expression is certainly a Python number and evaluating it elsewhere gives the same."""
    if expression is None or depth == 0:
        return False
    if isinstance(expression, cst.BaseNumber):
        return literal(expression) is not None
    if isinstance(expression, cst.UnaryOperation):
        return is_number(expression.expression, model, depth - 1)
    if isinstance(expression, cst.BinaryOperation):
        return _of_operation(expression, model, depth)
    if isinstance(expression, cst.Subscript):
        owner = expression.value
        is_index = len(expression.slice) == 1 and isinstance(expression.slice[0].slice, cst.Index)
        return is_index and isinstance(owner, cst.Attribute) and owner.attr.value == "shape"
    if isinstance(expression, cst.Call):
        name = model.qualified_name(expression.func) or ""
        size = method_call(expression, "size")
        return name in _NUMBERS or name.startswith("math.") or (size is not None and len(expression.args) == 1)
    if isinstance(expression, cst.Name):
        return _of_name(expression, model, depth)
    return isinstance(expression, cst.Attribute) and _of_attribute(expression, model, depth)


def _of_operation(operation: cst.BinaryOperation, model: Model, depth: int) -> bool:
    if isinstance(operation.operator, cst.Power) and isinstance(operation.left, (cst.Name, cst.Attribute)):
        return literal(operation.right) in (0.5, -0.5)  # of the number of channels
    if isinstance(operation.operator, cst.FloorDivide):
        return True
    return is_number(operation.left, model, depth - 1) and is_number(operation.right, model, depth - 1)


def _of_name(name: cst.Name, model: Model, depth: int) -> bool:
    bindings = model.reaching(name)
    if not bindings or model.value(name).kind not in (Kind.NUMBER, Kind.UNKNOWN):
        return False
    for binding in bindings:
        if binding.path and _is_shape(binding.value):
            continue
        if binding.kind is not BindingKind.ASSIGNMENT or binding.path:
            return False
        if not is_number(binding.value, model, depth - 1):
            return False
    return True


def _is_shape(expression: cst.BaseExpression | None) -> bool:
    if isinstance(expression, cst.Attribute):
        return expression.attr.value == "shape"
    return method_call(expression, "size") is not None


def _of_attribute(attribute: cst.Attribute, model: Model, depth: int) -> bool:
    owner = model.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
    assigned = model.definitions.attribute(owner, attribute.attr.value) if owner is not None else []
    return bool(assigned) and all(not a.path and is_number(a.value, model, depth - 1) for a in assigned)


def rank(expression: cst.BaseExpression | None, model: Model, depth: int = _DEPTH) -> int | None:
    """Return how many dimensions a tensor has, where the code writes its shape down: `view(b, n, h, d)`."""
    if expression is None or depth == 0:
        return None
    if isinstance(expression, cst.Name):
        found = {_of_bound(b, model, depth) for b in model.reaching(expression)}
        return found.pop() if len(found) == 1 else None
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, (cst.Multiply, cst.Divide)):
        return rank(expression.left, model, depth - 1)
    if isinstance(expression, cst.Subscript):
        below = rank(expression.value, model, depth - 1)
        is_number_index = len(expression.slice) == 1 and isinstance(expression.slice[0].slice, cst.Index)
        index = expression.slice[0].slice if is_number_index else None
        picks = isinstance(index, cst.Index) and isinstance(index.value, cst.Integer)
        return below - 1 if below is not None and picks else None
    if isinstance(expression, cst.Attribute):
        return _of_weight(expression, model)
    return _of_call(expression, model, depth) if isinstance(expression, cst.Call) else None


def _of_weight(attribute: cst.Attribute, model: Model) -> int | None:
    """Return the rank of what a module learns: a table, a matrix, or a parameter of a shape that is written down."""
    if attribute.attr.value == "weight" and model.value(attribute.value).name in _WITH_MATRIX:
        return 2
    owner = model.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
    assigned = model.definitions.attribute(owner, attribute.attr.value) if owner is not None else []
    found = {_of_parameter(binding.value, model) if not binding.path else None for binding in assigned}
    return found.pop() if len(found) == 1 else None


def _of_parameter(value: cst.BaseExpression | None, model: Model) -> int | None:
    if not isinstance(value, cst.Call) or model.qualified_name(value.func) != "torch.nn.Parameter" or not value.args:
        return None
    made = value.args[0].value
    while isinstance(made, cst.BinaryOperation):
        made = made.right if literal(made.left) is not None else made.left
    if not isinstance(made, cst.Call) or model.qualified_name(made.func) not in _OF_SIZES:
        return None
    sizes = [argument.value for argument in made.args if argument.keyword is None and not argument.star]
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        if any(isinstance(element, cst.StarredElement) for element in sizes[0].elements):
            return None
        return len(sizes[0].elements)
    is_open = len(sizes) == 1 or any(argument.star == "*" for argument in made.args)  # one may be a whole shape
    return None if is_open else len(sizes)


def _of_bound(binding: Binding, model: Model, depth: int) -> int | None:
    if binding.kind is not BindingKind.ASSIGNMENT or binding.value is None:
        return None
    if not binding.path:
        return rank(binding.value, model, depth - 1)
    return _of_part(binding.value, binding.path, model, depth)


def _of_part(value: cst.BaseExpression, path: tuple[int, ...], model: Model, depth: int) -> int | None:
    """Return the rank of what unpacking a value gives."""
    if len(path) != 1:
        return None
    if isinstance(value, cst.Tuple) and 0 <= path[0] < len(value.elements):
        return rank(value.elements[path[0]].value, model, depth - 1)
    if isinstance(value, (cst.GeneratorExp, cst.ListComp)):
        return rank(value.elt, model, depth - 1)
    if not isinstance(value, cst.Call):
        return None
    if model.qualified_name(value.func) == "builtins.map":
        function = value.args[0].value
        return rank(function.body, model, depth - 1) if isinstance(function, cst.Lambda) else None
    split = method_call(value, "unbind", "chunk", "split")
    if split is None:
        below = rank(value, model, depth - 1)
        return below - 1 if below is not None else None
    below = rank(split.value, model, depth - 1)
    return None if below is None else below - 1 if split.attr.value == "unbind" else below


def _of_call(call: cst.Call, model: Model, depth: int) -> int | None:
    if model.qualified_name(call.func) == "einops.rearrange":
        pattern = literal(call.args[1].value) if len(call.args) > 1 else None
        return _axes(pattern) if isinstance(pattern, str) else None
    method = method_call(call)
    if method is None or model.qualified_name(call.func) is not None:
        return None
    if method.attr.value in ("view", "reshape", "permute"):
        given = [argument for argument in call.args if not argument.star and argument.keyword is None]
        return len(given) if len(given) == len(call.args) > 1 else None
    return rank(method.value, model, depth - 1) if method.attr.value in _SAME_RANK else None


def _axes(pattern: str) -> int | None:
    """Return how many axes a pattern of einops results in, None where it says ``...``."""
    result = re.sub(r"\([^)]*\)", "x", pattern.partition("->")[2])
    return None if "..." in pattern else len(result.split()) or None
