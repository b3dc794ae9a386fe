"""What tests were classified as, while variables may be made of each other, and of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import libcst as cst

_MOST_TESTS = 5000
"""How many tests are looked at to classify one: more than variables of variables need, but for circles of them."""

Answer = TypeVar("Answer")


class Classified(Generic[Answer]):
    """Remembers each answer that does not depend on a test which is still being classified."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[cst.BaseExpression, Answer | None]] = {}
        self._open: set[tuple[int, bool]] = set()
        self._asked = 0
        self._met = 0
        """How often a test was met that is being classified: what depends on it is asked again later."""

    def answer(
        self, test: cst.BaseExpression, taken: bool, by: Callable[[cst.BaseExpression, bool], Answer | None]
    ) -> Answer | None:
        """Return what is known of a test, or what ``by`` says of it; None inside of itself."""
        key = (id(test), taken)
        if key in self._known:
            return self._known[key][1]
        self._asked = self._asked + 1 if self._open else 0
        if key in self._open or self._asked > _MOST_TESTS:
            self._met += 1
            return None
        self._open.add(key)
        met = self._met
        found = by(test, taken)
        self._open.discard(key)
        if self._met == met or not self._open:
            self._known[key] = test, found
        return found
