"""The calls of a file by the names that they go by."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import Scopes
from torchlint.syntax.walk import Tree

_PARTIAL = "partial"


class CallsByName:
    """Answers which calls can be of functions and methods with certain names."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self._calls = tree.nodes(cst.Call)
        self._by_name: dict[str, list[int]] = {}
        """Places among all calls."""
        self._others: list[int] = []
        self._named: dict[frozenset[str], list[cst.Call]] = {}
        """What `named` has answered."""

        self._aliases = aliases = scopes.aliases()
        for place, call in enumerate(self._calls):
            function = call.func
            if isinstance(function, cst.Attribute):
                self._by_name.setdefault(function.attr.value, []).append(place)
            elif isinstance(function, cst.Name) and function.value not in aliases:
                self._by_name.setdefault(function.value, []).append(place)
            else:
                self._others.append(place)

    def named(self, names: frozenset[str]) -> list[cst.Call]:
        """Return the calls by these names, by names that may stand for them, and partial ones, in document order."""
        known = self._named.get(names)
        if known is not None:
            return known
        found = [place for name in self._by_name.keys() & names for place in self._by_name[name]]
        found += self._by_name.get(_PARTIAL, ()) if _PARTIAL not in names else ()
        found += self._others
        if len(found) > len(self._others):
            found.sort()
        known = self._named[names] = [self._calls[place] for place in found]
        return known

    def occur(self, names: frozenset[str]) -> bool:
        """Return whether anything is called by one of these names, not counting names that may stand for them."""
        return not names.isdisjoint(self._by_name)

    def may_be(self, call: cst.Call, names: frozenset[str]) -> bool:
        """Return whether a call is among those by these names, for who asks call by call."""
        function = call.func
        if isinstance(function, cst.Attribute):
            return function.attr.value in names or function.attr.value == _PARTIAL
        if isinstance(function, cst.Name) and function.value not in self._aliases:
            return function.value in names or function.value == _PARTIAL
        return True
