"""Lines and edits of plain text, without trees."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from torchlint.diagnostic import Range, TextEdit

_BLANK = " \t\f"


def line_start(text: str, offset: int) -> int:
    """Return where the line of an offset begins."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_end(text: str, offset: int) -> int:
    """Return where the line of an offset ends, before its newline."""
    ends = [end for end in (text.find("\n", offset), text.find("\r", offset)) if end >= 0]
    return min(ends, default=len(text))


def next_line(text: str, offset: int) -> int:
    """Return where the line after that of an offset begins (the end of the text if there is none)."""
    end = line_end(text, offset)
    return end + 2 if text.startswith("\r\n", end) else min(end + 1, len(text))


def line_before(text: str, offset: int) -> int:
    """Return where the line before that of an offset ends, before its newline."""
    start = line_start(text, offset)
    return start - 2 if text[max(start - 2, 0) : start] == "\r\n" else max(start - 1, 0)


def starts_line(text: str, offset: int) -> bool:
    """Return whether only white space stands before an offset on its line."""
    return not text[line_start(text, offset) : offset].strip(_BLANK)


def indentation(text: str, offset: int) -> str:
    """Return the white space that the line of an offset begins with."""
    start = line_start(text, offset)
    end = start
    while end < len(text) and text[end] in _BLANK:
        end += 1
    return text[start:end]


def without_one_gap(text: str, lines: Range) -> Range:
    """Return the lines with blank ones above, so that of two gaps around them the larger one is left."""
    above, below = _blank_lines(text, lines.start, upwards=True), _blank_lines(text, lines.end)
    count = len(above) if lines.end + sum(below) == len(text) else min(len(above), len(below))
    return Range(lines.start - sum(above[:count]), lines.end)


def without_gap_below(text: str, lines: Range) -> Range:
    """Return the lines with the blank ones below, unless the text ends with them."""
    end = lines.end + sum(_blank_lines(text, lines.end))
    return Range(lines.start, end) if end < len(text) else lines


def without_gap_at_top(text: str, lines: Range) -> Range:
    """Return the lines with the blank ones below, where nothing stands above them."""
    return lines if text[: lines.start].strip() else Range(lines.start, lines.end + sum(_blank_lines(text, lines.end)))


def _blank_lines(text: str, offset: int, *, upwards: bool = False) -> list[int]:
    """Return the lengths of the blank lines that begin, or upwards end, at an offset where a line begins."""
    found: list[int] = []
    while offset > 0 if upwards else offset < len(text):
        start = line_start(text, line_before(text, offset)) if upwards else offset
        end = offset if upwards else next_line(text, offset)
        if text[start:end].strip():
            break
        found.append(end - start)
        offset = start if upwards else end
    return found


def is_word(character: str) -> bool:
    """Return whether a character can be part of an identifier, keyword or number."""
    return character.isalnum() or character == "_"


def trimmed(edit: TextEdit, text: str) -> TextEdit:
    """Return the edit without what its beginning and end leave as it was."""
    start, end, content = edit.range.start, edit.range.end, edit.content
    old = text[start:end]
    prefix = _common_length(old, content)
    suffix = _common_length(old[prefix:][::-1], content[prefix:][::-1])
    return TextEdit(Range(start + prefix, end - suffix), content[prefix : len(content) - suffix])


def _common_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def merged(edits: Iterable[TextEdit]) -> tuple[TextEdit, ...] | None:
    """Return the edits sorted, insertions at one place joined in their given order; None if any overlap."""
    found: list[TextEdit] = []
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: edit.range):
        previous = found[-1] if found else None
        if previous is None or (edit.range.start >= previous.range.end and edit.range != previous.range):
            found.append(edit)
        elif edit.range == previous.range and edit.range.start == edit.range.end:
            found[-1] = TextEdit(edit.range, previous.content + edit.content)
        else:
            return None
    return tuple(edit for edit in found if edit.content or edit.range.start != edit.range.end)


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    """Return the text with sorted, disjoint edits applied."""
    parts: list[str] = []
    position = 0
    for edit in edits:
        parts += [text[position : edit.range.start], edit.content]
        position = edit.range.end
    return "".join([*parts, text[position:]])


def disjoint(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges sorted, with those that overlap joined."""
    found: list[Range] = []
    for place in sorted(ranges):
        if found and place.start < found[-1].end:
            found[-1] = Range(found[-1].start, max(found[-1].end, place.end))
        else:
            found.append(place)
    return tuple(found)


class Shift:
    """Where offsets of a text lie after sorted, disjoint edits."""

    def __init__(self, edits: Sequence[TextEdit]) -> None:
        self._edits = edits
        self._starts = [edit.range.start for edit in edits]
        self._deltas = [0]
        for edit in edits:
            grown = len(edit.content) - (edit.range.end - edit.range.start)
            self._deltas.append(self._deltas[-1] + grown)

    def offset(self, offset: int) -> int:
        """Return the new offset of what follows an old one; inside an edit, where the edit's content begins."""
        index = bisect_right(self._starts, offset)
        if index and self._edits[index - 1].range.end > offset:
            return self._starts[index - 1] + self._deltas[index - 1]
        return offset + self._deltas[index]

    def end(self, offset: int) -> int:
        """Return the new offset of what precedes an old one; inside an edit, where the edit's content ends."""
        index = bisect_right(self._starts, offset - 1)
        if index and self._edits[index - 1].range.end >= offset:
            return self._edits[index - 1].range.end + self._deltas[index]
        return offset + self._deltas[index]

    def content(self, index: int) -> Range:
        """Return where the content of the edit with this index stands in the new text."""
        start = self._starts[index] + self._deltas[index]
        return Range(start, start + len(self._edits[index].content))


class Places:
    """Sorted ranges, asked which of them stand where, in a time that hardly grows with their number."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._ranges = ranges
        self._starts = [place.start for place in ranges]
        self._reach = list(accumulate((place.end for place in ranges), max))

    def touch(self, place: Range) -> bool:
        """Return whether any of the ranges overlaps a place or is next to it."""
        index = bisect_right(self._starts, place.end)
        return index > 0 and self._reach[index - 1] >= place.start

    def overlapping(self, place: Range) -> Iterator[int]:
        """Yield the indices of the ranges that overlap a place, the last one first."""
        index = bisect_left(self._starts, place.end)
        while index and self._reach[index - 1] > place.start:
            index -= 1
            if self._ranges[index].end > place.start:
                yield index


class Rows:
    """Turns the rows (from 1) and UTF-8 columns (from 0) of Python's own parser into offsets."""

    def __init__(self, text: str) -> None:
        self._lines = list(io.StringIO(text, newline=""))
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, row: int, column: int) -> int:
        """Return the offset of a place."""
        line = self._lines[row - 1] if row <= len(self._lines) else ""
        if not line.isascii():
            column = len(line.encode()[:column].decode(errors="replace"))
        return self._starts[row - 1] + column

    def code_above(self, row: int) -> int:
        """Return the last row above this one with more than a comment on it."""
        row -= 1
        while row > 1 and self._lines[row - 1].lstrip()[:1] in ("", "#"):
            row -= 1
        return row


def comments(text: str) -> tuple[Range, ...] | None:
    """Return where the comments of a source stand, None if Python cannot tokenize it."""
    starts = [0]
    found = []
    try:
        lines = list(io.StringIO(text, newline=""))
        for line in lines:
            starts.append(starts[-1] + len(line))
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type == tokenize.COMMENT:
                start = starts[token.start[0] - 1] + token.start[1]
                found.append(Range(start, start + len(token.string)))
    except (tokenize.TokenError, SyntaxError, IndexError, StopIteration):
        return None
    return tuple(found)
