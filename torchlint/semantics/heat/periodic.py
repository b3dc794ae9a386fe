"""Tests that hold once in an interval: what they compare with moves on where they hold."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_REACHED = (cst.GreaterThan, cst.GreaterThanEqual)
_MAKES = frozenset("list dict deque defaultdict zeros empty tensor".split())


def counts_on(statement: cst.If, tree: Tree) -> bool:
    """Return whether a branch is taken once in an interval.

    ``if step - last >= interval: last = step``, ``if step >= due: due += interval`` (or ``due = step + interval``),
    ``if len(losses) == n: losses = []``, ``if seen // n > before // n``; also ``if losses: losses = []`` in a branch
    """
    test = statement.test
    if _has_collected(test, statement, tree):
        return True
    while isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        test = test.left
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    left, right = test.left, test.comparisons[0].comparator
    if isinstance(test.comparisons[0].operator, (*_REACHED, cst.Equal)) and _is_full(left, right, statement, tree):
        return True
    if not isinstance(test.comparisons[0].operator, _REACHED):
        return False
    if _is_quotient(left) and _is_quotient(right):
        return True
    if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract):
        own = tree.below(statement.body, cst.Assign)
        return any(is_same(s.value, left.left) and is_same(s.targets[0].target, left.right) for s in own)
    added = tree.below(statement.body, cst.AugAssign)
    if any(isinstance(s.operator, cst.AddAssign) and is_same(s.target, right) for s in added):
        return True
    moved = (s for s in tree.below(statement.body, cst.Assign) if is_same(s.targets[0].target, right))
    return any(any(is_same(node, left) for node in tree.descendants(s.value)) for s in moved)


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
    made = tree.below(statement.body, cst.Assign)
    return any(is_same(s.targets[0].target, held) and _is_fresh(s.value) for s in made)


def _is_fresh(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return identifier(value.func) in _MAKES
    return isinstance(value, (cst.List, cst.Dict)) and not value.elements


def _is_quotient(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.FloorDivide)
