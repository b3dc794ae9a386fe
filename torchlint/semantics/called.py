"""The calls of a file by the names that they go by."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.scopes import Scopes
from torchlint.syntax.walk import Tree

_PARTIAL = "partial"


class Called:
    """Answers which calls can be of functions and methods with certain names."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self._tree = tree
        self._by_name: dict[str, list[cst.Call]] = {}
        self._others: list[cst.Call] = []
        aliases = scopes.aliases()
        for call in tree.nodes(cst.Call):
            function = call.func
            if isinstance(function, cst.Attribute):
                self._by_name.setdefault(function.attr.value, []).append(call)
            elif isinstance(function, cst.Name) and function.value not in aliases:
                self._by_name.setdefault(function.value, []).append(call)
            else:
                self._others.append(call)

    def named(self, names: frozenset[str]) -> list[cst.Call]:
        """Return the calls by these names, by names that may stand for them, and partial ones, in document order."""
        found = [call for name in {*names, _PARTIAL} for call in self._by_name.get(name, ())]
        return sorted((*found, *self._others), key=self._tree.order) if found else self._others
