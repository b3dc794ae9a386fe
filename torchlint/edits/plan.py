"""Which fixes can be applied together, and which of them do no harm."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from typing import TypeVar

from torchlint.diagnostic import Range, TextEdit, TextFix
from torchlint.edits.text import disjoint, merged

Fixes = TypeVar("Fixes")


def compatible(fixes: Sequence[TextFix]) -> list[int]:
    """Return the indices of fixes that can be applied together; of two that touch, the earlier one.

    Whole lines inserted at one place follow each other, and the same import is added once.
    """
    accepted: list[int] = []
    taken = _Taken()
    for index, fix in enumerate(fixes):
        claim = _Claim(fix)
        if taken.leaves_room_for(claim):
            accepted.append(index)
            taken.add(claim)
    return accepted


def joined(fixes: Sequence[TextFix]) -> tuple[TextEdit, ...]:
    """Return the edits of compatible fixes as one sorted sequence."""
    return merged(edit for fix in fixes for edit in fix.edits) or ()


class _Claim:
    """The text that one fix has to itself: all from its first edit to its last, and the lines it inserts."""

    def __init__(self, fix: TextFix) -> None:
        inner = [edit for edit in fix.edits if not _is_line(edit)]
        self.lines = [edit.range.start for edit in fix.edits if _is_line(edit)]
        # Imports stand far from the rest: they claim only themselves.
        imports = [edit for edit in inner if edit.range.end < fix.edits[-1].range.start and _is_whole_line(edit)]
        inner = [edit for edit in inner if edit not in imports]
        hulls = [edit.range for edit in imports]
        if inner:
            hulls.append(Range(inner[0].range.start, inner[-1].range.end))
        self.hulls = disjoint(hulls)


class _Taken:
    """What the fixes accepted so far have to themselves, sorted; none of it touches what another fix has."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._lines: list[int] = []

    def leaves_room_for(self, claim: _Claim) -> bool:
        """Return whether nothing touches the claim, and no line is inserted into what another has to itself."""
        return not any(map(self._touches, claim.hulls)) and not any(map(self._holds, claim.lines))

    def _touches(self, hull: Range) -> bool:
        before = bisect_right(self._starts, hull.end)
        line = bisect_right(self._lines, hull.start)
        is_cut = line < len(self._lines) and self._lines[line] < hull.end
        return is_cut or (before > 0 and self._ends[before - 1] >= hull.start)

    def _holds(self, line: int) -> bool:
        before = bisect_left(self._starts, line)
        return before > 0 and self._ends[before - 1] > line

    def add(self, claim: _Claim) -> None:
        """Take what has room."""
        for hull in claim.hulls:
            insort(self._starts, hull.start)
            insort(self._ends, hull.end)
        for line in claim.lines:
            insort(self._lines, line)


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
