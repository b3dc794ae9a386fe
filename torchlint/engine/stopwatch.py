"""How long each stage and rule took on one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

Answer = TypeVar("Answer")

ANSWERS = "answers to "
"""Before the code of a rule: the stage in which the model works out what that rule is the first to ask for."""


class Stopwatch:
    """Seconds by stage, summed.

    ``asks_twice`` tells the time of a rule alone from that of the model, which remembers its answers: what a rule takes
    when it asks the second time is its own.
    """

    def __init__(self, *, asks_twice: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._asks_twice = asks_twice

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the time of the block to the stage."""
        start = perf_counter()
        try:
            yield
        finally:
            self._add(stage, perf_counter() - start)

    def ask(self, code: str, question: Callable[[], Answer]) -> Answer:
        """Return the answer of a rule, whose time goes to its code."""
        start = perf_counter()
        try:
            answer = question()
        finally:
            seconds = perf_counter() - start
            self._add(code, seconds)
        if self._asks_twice:
            start = perf_counter()
            question()
            saved = max(0.0, seconds - (perf_counter() - start))
            self._add(code, -saved)
            self._add(ANSWERS + code, saved)
        return answer

    def _add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
