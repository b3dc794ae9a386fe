"""Forward passes of what the same function, or script, has read from a picture or a recording."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.readers import NAMES_OF_READERS, READERS

_DEPTH = 8
"""Through how many variables an input is followed to where it was read."""


class ReadInputs:
    """Tells them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    @cached_property
    def frames(self) -> list[cst.CSTNode]:
        """The functions that read, and the module where its top level does."""
        found = {id(frame): frame for frame in map(self._frame, self._readers())}
        return list(found.values())

    def given_to(self, call: cst.Call) -> bool:
        """Return whether a call is given what its function has read: ``model(transform(Image.open(path)))``."""
        frame = self._frame(call)
        if all(frame is not reading for reading in self.frames):
            return False
        seen: set[int] = set()
        return any(self._is_read(argument.value, frame, seen, 0) for argument in call.args)

    def _frame(self, node: cst.CSTNode) -> cst.CSTNode:
        return self._evaluator.definitions.enclosing_function(node) or self._tree.module

    def _readers(self) -> Iterator[cst.Call]:
        calls = self._tree.calls_named(*NAMES_OF_READERS)
        return (call for call in calls if self._evaluator.names.qualified(call.func) in READERS)

    def _is_read(self, value: cst.CSTNode, frame: cst.CSTNode, seen: set[int], depth: int) -> bool:
        """Whether a value is computed from what is read in a frame."""
        if id(value) in seen or depth > _DEPTH:
            return False
        seen.add(id(value))
        if any(self._evaluator.names.qualified(call.func) in READERS for call in self._tree.below(value, cst.Call)):
            return True
        names = (name for name in self._tree.below(value, cst.Name) if self._frame(name) is frame)
        bindings = (binding for name in names for binding in self._evaluator.flow.definitions(name))
        made = (binding.value for binding in bindings if binding.value is not None)
        return any(self._is_read(one, frame, seen, depth + 1) for one in made if self._frame(one) is frame)
