"""Tests that hold once in an interval: what they compare with moves on where they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_REACHED = (cst.GreaterThan, cst.GreaterThanEqual)
_FALLEN = (cst.LessThan, cst.LessThanEqual, cst.Equal)
_MOVING = (cst.AddAssign, cst.MultiplyAssign)
_OPPOSITES: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.GreaterThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
    cst.GreaterThan: cst.LessThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
    cst.NotEqual: cst.Equal,
}
"""What holds where a comparison fails; `if step == self.seen: return` lets each step pass once."""

_STEPS = frozenset(("backward", "manual_backward", "step"))
_WRITES: tuple[type[cst.CSTNode], ...] = (cst.Assign, cst.AugAssign, cst.Call, cst.Del)
_Node = TypeVar("_Node", bound=cst.CSTNode)
_MAKES = frozenset("list dict deque defaultdict zeros empty tensor".split())


class _Region(NamedTuple):
    """What runs where a test holds."""

    lines: Sequence[cst.CSTNode]
    tree: Tree

    def below(self, kind: type[_Node]) -> list[_Node]:
        """Return the nodes of a kind in it."""
        return [node for line in self.lines for node in self.tree.below(line, kind)]


def counts_on(statement: cst.If, tree: Tree) -> bool:
    """Return whether a branch is taken once in an interval.

    ``if step - last >= interval: last = step``, ``if step >= due: due += interval`` (or ``due = step + interval``),
    ``if len(losses) == n: losses = []``, ``if seen // n > before // n``; also ``if losses: losses = []`` in a branch,
    ``if since >= n: since = 0``, ``if percent != shown: shown = percent``
    """
    branch = _Region((statement.body,), tree)
    return _has_collected(statement, branch) or _counts(statement.test, True, branch)


def counts_on_after(leaves: cst.If, rest: Sequence[cst.CSTNode], tree: Tree) -> bool:
    """Return whether what follows a branch that leaves early runs once in an interval.

    ``if step - self.last < interval: return``, then ``self.last = step``; ``if len(self.losses) < n: return``, then
    ``self.losses = []``. What takes the steps of a training does so in each of them, however long it waited.
    """
    region = _Region(_lasting(rest, leaves, tree), tree)
    if not _counts(leaves.test, False, region):
        return False
    return not any(identifier(call.func) in _STEPS for line in rest for call in tree.below(line, cst.Call))


def _lasting(rest: Sequence[cst.CSTNode], leaves: cst.If, tree: Tree) -> list[cst.CSTNode]:
    """The lines which the next run can know of: in no loop, those that bind variables of the function are left out."""
    frame = tree.enclosing(leaves, *LOOPS, cst.FunctionDef)
    if not isinstance(frame, cst.FunctionDef):
        return list(rest)
    outer = {item.name.value for declared in tree.below(frame, cst.Global) for item in declared.names}
    outer |= {item.name.value for declared in tree.below(frame, cst.Nonlocal) for item in declared.names}
    small = (one for line in rest for kind in _WRITES for one in tree.below(line, kind))
    return [one for one in small if not _binds_own(one, outer)]


def _binds_own(line: cst.CSTNode, outer: set[str]) -> bool:
    target = line.targets[0].target if isinstance(line, cst.Assign) else getattr(line, "target", None)
    return isinstance(line, (cst.Assign, cst.AugAssign)) and isinstance(target, cst.Name) and target.value not in outer


def _counts(test: cst.BaseExpression, holds: bool, region: _Region) -> bool:
    """Whether a test, or one of those that must hold (or fail) together, does so once in an interval."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _counts(test.expression, not holds, region)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if holds else cst.Or):
        return _counts(test.left, holds, region) or _counts(test.right, holds, region)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    asked = type(test.comparisons[0].operator)
    operator = asked if holds else _OPPOSITES.get(asked)
    return operator is not None and _compares(test.left, operator, test.comparisons[0].comparator, region)


def _compares(
    left: cst.BaseExpression, operator: type[cst.BaseCompOp], right: cst.BaseExpression, region: _Region
) -> bool:
    assigned = region.below(cst.Assign)
    is_reached = operator in (*_REACHED, cst.Equal)
    if is_reached and (_is_full(left, right, region) or _resets(left, region)):
        return True
    if operator is cst.NotEqual:
        return any(is_same(s.value, left) and is_same(s.targets[0].target, right) for s in assigned)
    if operator in (*_REACHED, *_FALLEN) and _starts_again(left, right, assigned):
        return True
    if operator not in _REACHED:
        return False
    if _is_quotient(left) and _is_quotient(right):
        return True
    if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract):
        return any(is_same(s.value, left.left) and is_same(s.targets[0].target, left.right) for s in assigned)
    if isinstance(right, cst.BinaryOperation) and isinstance(right.operator, cst.Add):
        return any(is_same(s.value, left) and is_same(s.targets[0].target, right.left) for s in assigned)
    added = region.below(cst.AugAssign)
    if any(isinstance(s.operator, _MOVING) and is_same(s.target, right) for s in added):
        return True
    moved = (s for s in assigned if is_same(s.targets[0].target, right))
    return any(any(is_same(node, left) for node in region.tree.descendants(s.value)) for s in moved)


def _starts_again(left: cst.BaseExpression, right: cst.BaseExpression, assigned: list[cst.Assign]) -> bool:
    """Whether a branch sets what was counted back: to a number, or to the limit from which it is counted down."""
    numbers = (
        s.value for s in assigned if isinstance(left, (cst.Name, cst.Attribute)) and is_same(s.targets[0].target, left)
    )
    is_limit = isinstance(right, (cst.Name, cst.Attribute, cst.Integer))
    return is_limit and any(isinstance(literal(n), int) or isinstance(n, (cst.Name, cst.Attribute)) for n in numbers)


def _resets(left: cst.BaseExpression, region: _Region) -> bool:
    """Whether a branch resets what counts: ``if meter.count >= n: meter.reset()``."""
    calls = (method_call(call, "reset", "clear", "restart") for call in region.below(cst.Call))
    return isinstance(left, cst.Attribute) and any(m is not None and is_same(m.value, left.value) for m in calls)


def _is_full(left: cst.BaseExpression, right: cst.BaseExpression, region: _Region) -> bool:
    """Whether a test asks for how much was collected since the branch emptied the collection."""
    if not isinstance(left, cst.Call) or literal(right) in (0, 1):
        return False
    held = left.args[0].value if len(left.args) == 1 and identifier(left.func) == "len" else None
    sized = method_call(left, "size", "numel")
    held = sized.value if sized is not None else held
    if held is None:
        return False
    return _empties(held, region)


def _has_collected(statement: cst.If, region: _Region) -> bool:
    """Whether a test in another branch asks for anything collected since it emptied the collection."""
    test = statement.test
    if not isinstance(test, (cst.Name, cst.Attribute)) or not _empties(test, region):
        return False
    return isinstance(region.tree.enclosing(statement, cst.If, cst.For, cst.While, cst.FunctionDef), cst.If)


def _empties(held: cst.BaseExpression, region: _Region) -> bool:
    cleared = (method_call(call, "clear") for call in region.below(cst.Call))
    if any(method is not None and is_same(method.value, held) for method in cleared):
        return True
    deleted = (each.target for each in region.below(cst.Del))
    if any(isinstance(one, cst.Subscript) and is_same(one.value, held) for one in deleted):
        return True
    made = region.below(cst.Assign)
    return any(is_same(s.targets[0].target, held) and _is_fresh(s.value) for s in made)


def _is_fresh(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return identifier(value.func) in _MAKES
    return isinstance(value, (cst.List, cst.Dict)) and not value.elements


def _is_quotient(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.FloorDivide)
