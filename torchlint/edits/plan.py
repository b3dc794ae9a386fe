"""Which fixes can be applied together, and which of them do no harm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from torchlint.diagnostic import Range, TextEdit, TextFix
from torchlint.edits.text import merged

Fixes = TypeVar("Fixes")


def compatible(fixes: Sequence[TextFix]) -> list[int]:
    """Return the indices of fixes that can be applied together; of two that touch, the earlier one.

    Whole lines inserted at one place follow each other, and the same import is added once.
    """
    accepted: list[int] = []
    taken: list[_Claim] = []
    for index, fix in enumerate(fixes):
        claim = _Claim(fix)
        if not any(claim.touches(other) for other in taken):
            accepted.append(index)
            taken.append(claim)
    return accepted


def joined(fixes: Sequence[TextFix]) -> tuple[TextEdit, ...]:
    """Return the edits of compatible fixes as one sorted sequence."""
    return merged(edit for fix in fixes for edit in fix.edits) or ()


class _Claim:
    """The text that one fix has to itself: all from its first edit to its last, and the lines it inserts."""

    def __init__(self, fix: TextFix) -> None:
        inner = [edit for edit in fix.edits if not _is_line(edit)]
        self._lines = [edit for edit in fix.edits if _is_line(edit)]
        # Imports stand far from the rest: they claim only themselves.
        self._imports = [edit for edit in inner if edit.range.end < fix.edits[-1].range.start and _is_whole_line(edit)]
        inner = [edit for edit in inner if edit not in self._imports]
        self._hulls = [edit.range for edit in self._imports]
        if inner:
            self._hulls.append(Range(inner[0].range.start, inner[-1].range.end))

    def touches(self, other: _Claim) -> bool:
        hulls = any(one.start <= two.end and two.start <= one.end for one in self._hulls for two in other._hulls)
        return hulls or self._cuts(other) or other._cuts(self)

    def _cuts(self, other: _Claim) -> bool:
        """Return whether a line is inserted into what the other has to itself."""
        return any(h.start < line.range.start < h.end for line in self._lines for h in other._hulls)


def _is_line(edit: TextEdit) -> bool:
    return edit.range.start == edit.range.end and edit.content.endswith(("\n", "\r"))


def _is_whole_line(edit: TextEdit) -> bool:
    return not edit.content and edit.range.start != edit.range.end


def largest_sound(fixes: Sequence[Fixes], is_sound: Callable[[Sequence[Fixes]], bool]) -> list[Fixes]:
    """Return the fixes without those that do harm, alone or together, in few questions where few do."""
    if not fixes or is_sound(fixes):
        return list(fixes)
    if len(fixes) == 1:
        return []
    middle = len(fixes) // 2
    first = largest_sound(fixes[:middle], is_sound)
    second = largest_sound(fixes[middle:], is_sound)
    both = first + second
    return both if not (first and second) or is_sound(both) else first
