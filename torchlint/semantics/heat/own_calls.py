"""The calls of a loop or function itself, without those of loops and functions in it."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.syntax.walk import Tree

FRAMES: frozenset[type] = frozenset((*LOOPS, *FUNCTIONS, cst.ClassDef))


class OwnCalls:
    """Tells to which loop or function each call belongs."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._own: dict[int, list[cst.Call]] | None = None

    def of(self, root: cst.CSTNode) -> list[cst.Call]:
        """Return the calls whose innermost enclosing loop or function is ``root``."""
        if self._own is None:
            self._own = {}
            parents = self._tree.parents
            for call in self._tree.nodes(cst.Call):
                child: cst.CSTNode = call
                ancestor = parents.get(id(call))
                while ancestor is not None and ancestor.__class__ not in FRAMES:
                    child, ancestor = ancestor, parents.get(id(ancestor))
                if ancestor is not None and child is getattr(ancestor, "body", None):
                    self._own.setdefault(id(ancestor), []).append(call)
        return self._own.get(id(root), [])
