"""Tests that hold once in an interval: what they compare with moves on where they hold."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_REACHED = (cst.GreaterThan, cst.GreaterThanEqual)


def counts_on(statement: cst.If, tree: Tree) -> bool:
    """Return whether a branch is taken once in an interval.

    ``if step - last >= interval: last = step``, ``if step >= due: due += interval``
    """
    test = statement.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    if not isinstance(test.comparisons[0].operator, _REACHED):
        return False
    left, right = test.left, test.comparisons[0].comparator
    if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract):
        own = tree.below(statement.body, cst.Assign)
        return any(is_same(s.value, left.left) and is_same(s.targets[0].target, left.right) for s in own)
    added = tree.below(statement.body, cst.AugAssign)
    return any(isinstance(s.operator, cst.AddAssign) and is_same(s.target, right) for s in added)
