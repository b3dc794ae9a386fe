"""Variables that a program adds up to what it backpropagates: ``loss = bce + 0.1 * dice; loss.backward()``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import libcst as cst

from torchlint.semantics.tables.names import OPTIONS
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.walk import Tree

Key = tuple[int, str]
KeyOf = Callable[[cst.CSTNode], Key | None]
_PASSES = frozenset(("backward", "manual_backward"))
_RUNNERS = re.compile(r"accelerator|engine|fabric|strategy|^(self|amp|model|optimizer)$|_model$", re.IGNORECASE)
"""What is called that takes the backward pass of a loss which it is given."""
_SCALES = frozenset(("scale", "scale_loss", "mean", "sum"))
_DEPTH = 3
"""Through how many variables a sum is followed."""


def loss_terms(tree: Tree, key_of: KeyOf) -> frozenset[Key]:
    """Return the keys of the local variables that are added up, be it scaled by a number, to what is backpropagated."""
    passes = [call for call in tree.nodes(cst.Call) if identifier(call.func) in _PASSES]
    starts = [start for call in passes for start in _starts(call)]
    summed = {key for start in starts for leaf in _whole(start) if (key := key_of(leaf)) is not None}
    found = {key for start in starts for total in _sums(start) for key in _added(total, key_of)}
    summed |= found
    for _ in range(_DEPTH if summed else 0):
        terms = {key for value in _assigned(tree, summed, key_of) for key in _added(value, key_of)}
        summed = terms - found
        found |= terms
    return frozenset(found)


def _starts(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What a backward pass may start from: ``(loss / n).backward()``, ``accelerator.backward(loss)``."""
    if isinstance(call.func, cst.Attribute):
        yield call.func.value
    if call.args and not (isinstance(call.args[0].value, cst.BinaryOperation) and _is_gradient(call)):
        yield call.args[0].value


def _is_gradient(call: cst.Call) -> bool:
    """Whether a pass is given the gradient of what it starts from, ``output.backward(g + h)``, and not a loss."""
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    return identifier(call.func) == "backward" and _RUNNERS.search(identifier(receiver) if receiver else "") is None


def _sums(start: cst.BaseExpression) -> Iterator[cst.BinaryOperation]:
    """The sum that an expression is but for scale: ``(bce + 0.1 * dice) / n``."""
    if isinstance(start, cst.BinaryOperation):
        if isinstance(start.operator, (cst.Add, cst.Subtract)):
            yield start
        elif isinstance(start.operator, (cst.Divide, cst.Multiply)):
            yield from _sums(start.left)
    elif isinstance(start, cst.Call) and identifier(start.func) in _SCALES:
        inner = start.args[0].value if start.args else getattr(start.func, "value", None)
        yield from _sums(inner) if inner is not None else ()


def _whole(value: cst.BaseExpression | None) -> Iterator[cst.Name]:
    """The variable that an expression is but for scale."""
    if isinstance(value, cst.Name):
        yield value
    elif isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Divide, cst.Multiply)):
        yield from _whole(value.left)
    elif isinstance(value, cst.Call) and identifier(value.func) in _SCALES:
        yield from _whole(value.args[0].value if value.args else getattr(value.func, "value", None))


def _assigned(tree: Tree, keys: set[Key], key_of: KeyOf) -> Iterator[cst.BaseExpression]:
    """What is assigned or added to these variables."""
    names = {name for _, name in keys}
    for statement in tree.nodes(cst.Assign):
        target = statement.targets[0].target
        if len(statement.targets) == 1 and identifier(target) in names and key_of(target) in keys:
            yield statement.value
    for addition in tree.nodes(cst.AugAssign):
        is_sum = isinstance(addition.operator, (cst.AddAssign, cst.SubtractAssign))
        if is_sum and identifier(addition.target) in names and key_of(addition.target) in keys:
            yield addition.value


def _added(value: cst.BaseExpression, key_of: KeyOf) -> Iterator[Key]:
    """The variables that are terms of a sum."""
    if isinstance(value, cst.Name):
        key = key_of(value)
        yield from () if key is None else (key,)
    elif isinstance(value, cst.UnaryOperation):
        yield from _added(value.expression, key_of)
    elif isinstance(value, cst.BinaryOperation):
        if isinstance(value.operator, (cst.Add, cst.Subtract)):
            yield from _added(value.left, key_of)
            yield from _added(value.right, key_of)
        elif isinstance(value.operator, cst.Divide):
            yield from _added(value.left, key_of)
        elif isinstance(value.operator, cst.Multiply):
            yield from _scaled(value.left, value.right, key_of)


def _scaled(left: cst.BaseExpression, right: cst.BaseExpression, key_of: KeyOf) -> Iterator[Key]:
    """The variable that a number, or an option, scales: which of two variables that is nobody knows."""
    for factor, scaled in ((left, right), (right, left)):
        is_option = isinstance(factor, cst.Attribute) and identifier(factor.value) in OPTIONS
        is_number = is_option or isinstance(literal(factor), (int, float))
        if is_number and isinstance(scaled, (cst.Name, cst.BinaryOperation)):
            yield from _added(scaled, key_of)
