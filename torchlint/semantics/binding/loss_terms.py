"""Variables that a program adds up to what it backpropagates: ``loss = bce + 0.1 * dice; loss.backward()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from torchlint.semantics.tables.names import OPTIONS
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.walk import Tree

Key = tuple[int, str]
KeyOf = Callable[[cst.CSTNode], Key | None]
_PASSES = frozenset(("backward", "manual_backward"))
_SCALES = frozenset(("scale", "scale_loss", "mean", "sum"))
_DEPTH = 3
"""Through how many variables a sum is followed."""


def loss_terms(tree: Tree, key_of: KeyOf) -> frozenset[Key]:
    """Return the keys of the local variables that are added up, be it scaled by a number, to what is backpropagated."""
    summed = {key for call in tree.nodes(cst.Call) for key in _started_from(call, key_of)}
    found: set[Key] = set()
    for _ in range(_DEPTH if summed else 0):
        terms = {key for value in _assigned(tree, summed, key_of) for key in _added(value, key_of)}
        summed = terms - found
        found |= terms
    return frozenset(found)


def _started_from(call: cst.Call, key_of: KeyOf) -> Iterator[Key]:
    """The variables from which a backward pass starts: ``(loss / n).backward()``, ``accelerator.backward(loss)``."""
    if identifier(call.func) not in _PASSES:
        return
    start = call.func.value if isinstance(call.func, cst.Attribute) else None
    for value in (start, call.args[0].value if call.args else None):
        yield from (key for leaf in _whole(value) if (key := key_of(leaf)) is not None)


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
