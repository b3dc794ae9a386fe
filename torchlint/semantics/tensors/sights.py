"""Which statements may see a tensor between the one that makes it and the one that moves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.canonical import is_same

_LOOKING_NAMES = frozenset(("globals", "locals", "vars", "eval", "exec"))
_LOOKING = frozenset(f"builtins.{name}" for name in _LOOKING_NAMES)


class _Statement(NamedTuple):
    """What is asked of a statement for each tensor that is made before it."""

    names: frozenset[str]
    calls_unseen: bool
    """Whether it may run a function of the file, or one that looks at variables by their names."""


class Sights:
    """Remembers of each statement and variable what does not change."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._statements: dict[cst.CSTNode, _Statement] = {}
        self._read_elsewhere: dict[cst.Name, bool] = {}

    def may_use(self, statement: cst.CSTNode, target: cst.BaseExpression) -> bool:
        """Return whether a statement can see what is bound to a name or an attribute.

        An attribute can be seen by any call that its owner is part of.
        """
        if isinstance(target, cst.Name):
            known = self._statement(statement)
            return target.value in known.names or (known.calls_unseen and self._is_read_elsewhere(target))
        if not isinstance(target, cst.Attribute):
            return False
        return any(
            is_same(target, node) or (is_same(target.value, node) and self._hands_on(node))
            for node in self._tree.descendants(statement)
        )

    def names(self, statement: cst.CSTNode) -> frozenset[str]:
        """Return the names that stand in a statement."""
        return self._statement(statement).names

    def later(self, statement: cst.Assign | cst.AnnAssign) -> Iterator[cst.CSTNode]:
        """Yield the small and compound statements after one in its block."""
        line = self._tree.parent(statement)
        if line is None:
            return
        yield from (
            [*line.body[[*line.body].index(statement) + 1 :]] if isinstance(line, cst.SimpleStatementLine) else []
        )
        for following in self._evaluator.flow.following(statement):
            if isinstance(following, cst.SimpleStatementLine):
                yield from following.body
            else:
                yield following

    def _hands_on(self, owner: cst.CSTNode) -> bool:
        """Whether the owner of an attribute is used as a whole, or one of its methods is called."""
        parent = self._tree.parent(owner)
        grandparent = self._tree.parent(parent) if parent is not None else None
        called = isinstance(grandparent, cst.Call) and grandparent.func is parent
        return not isinstance(parent, cst.Attribute) or called

    def _statement(self, statement: cst.CSTNode) -> _Statement:
        found = self._statements.get(statement)
        if found is None:
            nodes = list(self._tree.descendants(statement))
            called = (self._evaluator.names.qualified(node.func) for node in nodes if isinstance(node, cst.Call))
            names = frozenset(node.value for node in nodes if isinstance(node, cst.Name))
            found = _Statement(names, any(name is None or name in _LOOKING for name in called))
            self._statements[statement] = found
        return found

    def mentions(self, variable: cst.Name) -> list[cst.Name]:
        """Return all places of the file at which the same variable is bound or read."""
        scopes = self._evaluator.scopes
        own = scopes.deciding(variable.value, scopes.scope(variable))
        same = self._tree.named(variable.value)
        return [name for name in same if scopes.deciding(name.value, scopes.scope(name)) is own]

    def _is_read_elsewhere(self, variable: cst.Name) -> bool:
        """Whether another function of the file reads a variable, or may look at all of them."""
        found = self._read_elsewhere.get(variable)
        if found is None:
            enclosing, places = self._evaluator.definitions.enclosing_function, self.mentions(variable)
            found = (
                any(name.value in _LOOKING_NAMES for name in self._tree.nodes(cst.Name))
                or any(self._tree.enclosing(place, cst.Lambda) is not None for place in places)
                or any(enclosing(place) is not enclosing(variable) for place in places)
            )
            self._read_elsewhere[variable] = found
        return found
