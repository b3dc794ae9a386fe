"""The calls of a loop or function itself, without those of loops and functions in it."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.syntax.walk import Tree

FRAMES: frozenset[type[cst.CSTNode]] = frozenset((*LOOPS, *FUNCTIONS, cst.ClassDef))


class OwnCalls:
    """Tells to which loop or function each call belongs."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._own: dict[int, list[cst.Call]] | None = None

    def of(self, root: cst.CSTNode) -> list[cst.Call]:
        """Return the calls whose innermost enclosing loop or function is ``root``."""
        if self._own is None:
            self._own = {}
            frames = self._frames()
            for call in self._tree.nodes(cst.Call):
                frame = frames[self._tree.order(call)]
                if frame is not None:
                    self._own.setdefault(id(frame), []).append(call)
        return self._own.get(id(root), [])

    def _frames(self) -> list[cst.CSTNode | None]:
        """Return the loop or function, or the class, to whose body itself a node belongs, by its place."""
        tree = self._tree
        found: list[cst.CSTNode | None] = [None] * len(tree.ordered)
        frames: list[cst.CSTNode] = [frame for node_type in FRAMES for frame in tree.nodes(node_type)]
        for frame in sorted(frames, key=tree.order):  # what stands in another comes after it
            tree.mark(found, frame, None)
            tree.mark(found, frame.body, frame)  # type: ignore[attr-defined]
        return found
