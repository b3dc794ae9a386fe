"""Branches that keep count as their counterparts do: ``if log_target: total += a`` with ``else: total += b``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree


def counts_either_way(node: cst.CSTNode, statement: cst.CSTNode, branch: cst.CSTNode, tree: Tree) -> bool:
    """Return whether a node belongs to a sum or list that the other branch of a test adds to as well.

    Whatever is tested then, it does not decide whether anything is counted, only what.
    """
    if not isinstance(statement, cst.If) or statement.orelse is None or branch is statement.test:
        return False
    other = statement.orelse if branch is statement.body else statement.body
    added = (pair for pair in _added(branch, tree) if tree.within(node, pair[1]))
    always = [held for held, value in _added(other, tree) if tree.enclosing(value, cst.If) is statement]
    return any(is_same(held, counted) for held, _ in added for counted in always)


def _added(branch: cst.CSTNode, tree: Tree) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield what a branch adds to, with what it adds that is no constant."""
    for statement in tree.below(branch, cst.AugAssign):
        if isinstance(statement.operator, cst.AddAssign) and literal(statement.value) is None:
            yield statement.target, statement.value
    for call in tree.below(branch, cst.Call):
        method = method_call(call, "append")
        if method is not None and len(call.args) == 1 and literal(call.args[0].value) is None:
            yield method.value, call.args[0].value
