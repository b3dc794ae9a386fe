"""Which fix is to blame when the fixed program does not do what the original does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def bisect(items: Sequence[Item], is_bad: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Return a smallest group that is bad by itself, given that all items together are.

    Halves are tried first; where neither half is bad, the fault needs items of both, and items are dropped one by one.
    """
    suspects = list(items)
    while len(suspects) > 1:
        middle = len(suspects) // 2
        halves = (suspects[:middle], suspects[middle:])
        worse = next((half for half in halves if is_bad(half)), None)
        if worse is None:
            return _needed(suspects, is_bad)
        suspects = worse
    return suspects


def _needed(suspects: list[Item], is_bad: Callable[[Sequence[Item]], bool]) -> list[Item]:
    for item in list(suspects):
        fewer = [other for other in suspects if other is not item]
        if len(suspects) > 2 and is_bad(fewer):
            suspects = fewer
    return suspects
