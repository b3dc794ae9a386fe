"""Under which conditions a node runs, within its function."""

from __future__ import annotations

from typing import TypeAlias

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.syntax.canonical import canonical
from torchlint.syntax.walk import Tree

Conditions: TypeAlias = frozenset[tuple[str, str]]
"""Tests, as text or by where they stand, each with the side that is taken."""

_FRAMES = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


def conditions(node: cst.CSTNode, tree: Tree) -> Conditions:
    """Return what has to hold for a node to run; a loop counts as one that runs.

    What holds for one node and for another too does not part them: ``if a: x = f()``, later ``if a: g(x)``.
    """
    found, child = set[tuple[str, str]](), node
    for ancestor in tree.ancestors(node):
        if isinstance(ancestor, _FRAMES):
            break
        taken = _taken(ancestor, child, tree)
        if taken is not None:
            found.add(taken)
        child = ancestor
    return frozenset(found)


def exclude(some: Conditions, others: Conditions) -> bool:
    """Return whether what runs under some conditions does not run in a pass in which others hold."""
    return any((test, {"True": "False", "False": "True"}.get(side, "")) in others for test, side in some)


def _taken(ancestor: cst.CSTNode, child: cst.CSTNode, tree: Tree) -> tuple[str, str] | None:
    """The test that an ancestor of a node puts before it, with the side on which the node stands."""
    if isinstance(ancestor, (cst.If, cst.IfExp)):
        return None if child is ancestor.test else (_text(ancestor.test, tree), str(child is ancestor.body))
    if isinstance(ancestor, cst.BooleanOperation):
        holds = str(isinstance(ancestor.operator, cst.And))
        return None if child is ancestor.left else (_text(ancestor.left, tree), holds)
    if isinstance(ancestor, (cst.Try, cst.TryStar)):
        may_fail = child is ancestor.body and any(not ends_in_jump(handler.body) for handler in ancestor.handlers)
        return (str(id(ancestor)), "try") if may_fail or child is ancestor.orelse else None
    if isinstance(ancestor, (cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)):
        return str(id(ancestor)), "case"
    return None


def _text(test: cst.BaseExpression, tree: Tree) -> str:
    """What tells a test: its text, where it gives the same whenever it is asked."""
    return str(id(test)) if isinstance(test, cst.Call) or tree.below(test, cst.Call) else canonical(test)


def tests_before(node: cst.CSTNode, tree: Tree) -> list[cst.BaseExpression]:
    """Return the tests that decide in a function whether a node is reached: around it, and of what leaves before it."""
    found: list[cst.BaseExpression] = []
    child = node
    for ancestor in tree.ancestors(node):
        if isinstance(ancestor, _FRAMES):
            break
        if isinstance(ancestor, (cst.If, cst.IfExp, cst.While)) and child is not ancestor.test:
            found.append(ancestor.test)
        elif isinstance(ancestor, cst.BooleanOperation) and child is ancestor.right:
            found.append(ancestor.left)
        elif isinstance(ancestor, cst.IndentedBlock):
            for line in ancestor.body[: ancestor.body.index(child)]:
                if isinstance(line, cst.If) and ends_in_jump(line.body):
                    found.append(line.test)
                elif isinstance(line, cst.SimpleStatementLine):
                    found += [small.test for small in line.body if isinstance(small, cst.Assert)]
        child = ancestor
    return found
