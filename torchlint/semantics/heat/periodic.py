"""Tests that hold once in an interval: what they compare with moves on where they hold."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_REACHED = (cst.GreaterThan, cst.GreaterThanEqual)
_FALLEN = (cst.LessThan, cst.LessThanEqual, cst.Equal)
_MOVING = (cst.AddAssign, cst.MultiplyAssign)
_MAKES = frozenset("list dict deque defaultdict zeros empty tensor".split())


def counts_on(statement: cst.If, tree: Tree) -> bool:
    """Return whether a branch is taken once in an interval.

    ``if step - last >= interval: last = step``, ``if step >= due: due += interval`` (or ``due = step + interval``),
    ``if len(losses) == n: losses = []``, ``if seen // n > before // n``; also ``if losses: losses = []`` in a branch,
    ``if since >= n: since = 0``, ``if percent != shown: shown = percent``
    """
    return _has_collected(statement.test, statement, tree) or _counts(statement.test, statement, tree)


def _counts(test: cst.BaseExpression, statement: cst.If, tree: Tree) -> bool:
    """Whether a test, or one of those that must hold together, holds once in an interval."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _counts(test.left, statement, tree) or _counts(test.right, statement, tree)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    left, right = test.left, test.comparisons[0].comparator
    operator, assigned = test.comparisons[0].operator, tree.below(statement.body, cst.Assign)
    is_reached = isinstance(operator, (*_REACHED, cst.Equal))
    if is_reached and (_is_full(left, right, statement, tree) or _resets(left, statement, tree)):
        return True
    if isinstance(operator, cst.NotEqual):
        return any(is_same(s.value, left) and is_same(s.targets[0].target, right) for s in assigned)
    if isinstance(operator, (*_REACHED, *_FALLEN)) and _starts_again(left, right, assigned):
        return True
    if not isinstance(operator, _REACHED):
        return False
    if _is_quotient(left) and _is_quotient(right):
        return True
    if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract):
        return any(is_same(s.value, left.left) and is_same(s.targets[0].target, left.right) for s in assigned)
    if isinstance(right, cst.BinaryOperation) and isinstance(right.operator, cst.Add):
        return any(is_same(s.value, left) and is_same(s.targets[0].target, right.left) for s in assigned)
    added = tree.below(statement.body, cst.AugAssign)
    if any(isinstance(s.operator, _MOVING) and is_same(s.target, right) for s in added):
        return True
    moved = (s for s in assigned if is_same(s.targets[0].target, right))
    return any(any(is_same(node, left) for node in tree.descendants(s.value)) for s in moved)


def _starts_again(left: cst.BaseExpression, right: cst.BaseExpression, assigned: list[cst.Assign]) -> bool:
    """Whether a branch sets what was counted back: to a number, or to the limit from which it is counted down."""
    numbers = (
        s.value for s in assigned if isinstance(left, (cst.Name, cst.Attribute)) and is_same(s.targets[0].target, left)
    )
    is_limit = isinstance(right, (cst.Name, cst.Attribute, cst.Integer))
    return is_limit and any(isinstance(literal(n), int) or isinstance(n, (cst.Name, cst.Attribute)) for n in numbers)


def _resets(left: cst.BaseExpression, statement: cst.If, tree: Tree) -> bool:
    """Whether a branch resets what counts: ``if meter.count >= n: meter.reset()``."""
    calls = (method_call(call, "reset", "clear", "restart") for call in tree.below(statement.body, cst.Call))
    return isinstance(left, cst.Attribute) and any(m is not None and is_same(m.value, left.value) for m in calls)


def _is_full(left: cst.BaseExpression, right: cst.BaseExpression, statement: cst.If, tree: Tree) -> bool:
    """Whether a test asks for how much was collected since the branch emptied the collection."""
    if not isinstance(left, cst.Call) or literal(right) in (0, 1):
        return False
    held = left.args[0].value if len(left.args) == 1 and identifier(left.func) == "len" else None
    sized = method_call(left, "size", "numel")
    held = sized.value if sized is not None else held
    if held is None:
        return False
    return _empties(held, statement, tree)


def _has_collected(test: cst.BaseExpression, statement: cst.If, tree: Tree) -> bool:
    """Whether a test in another branch asks for anything collected since it emptied the collection."""
    if not isinstance(test, (cst.Name, cst.Attribute)) or not _empties(test, statement, tree):
        return False
    return isinstance(tree.enclosing(statement, cst.If, cst.For, cst.While, cst.FunctionDef), cst.If)


def _empties(held: cst.BaseExpression, statement: cst.If, tree: Tree) -> bool:
    cleared = (method_call(call, "clear") for call in tree.below(statement.body, cst.Call))
    if any(method is not None and is_same(method.value, held) for method in cleared):
        return True
    deleted = (each.target for each in tree.below(statement.body, cst.Del))
    if any(isinstance(one, cst.Subscript) and is_same(one.value, held) for one in deleted):
        return True
    made = tree.below(statement.body, cst.Assign)
    return any(is_same(s.targets[0].target, held) and _is_fresh(s.value) for s in made)


def _is_fresh(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return identifier(value.func) in _MAKES
    return isinstance(value, (cst.List, cst.Dict)) and not value.elements


def _is_quotient(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.FloorDivide)
