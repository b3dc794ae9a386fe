"""Offsets of a text as places of the protocol and back, and the edits that make one text of another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise

from lsprotocol import types
from pygls.workspace.position_codec import PositionCodec

from torchlint.diagnostic import Position, Range, TextEdit
from torchlint.source import Source, line_starts


class Places:
    """Turns offsets of a text into positions whose columns count in the units that the client asked for, and back.

    Rows end where both Python and the protocol end them. A byte order mark is no part of the text but of its first row.
    """

    def __init__(self, source: Source, codec: PositionCodec) -> None:
        self._source = source
        self._codec = codec

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset."""
        row, column = self._row_and_column(offset)
        before = self._prefix(row) + self._source.text[offset - column : offset]
        return types.Position(row, self._units(before))

    def range(self, found: Range) -> types.Range:
        """Return the range of the protocol."""
        return types.Range(self.position(found.start), self.position(found.end))

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position, or of the nearest one that exists."""
        start = self._source.offset(Position(position.line + 1, 1))
        end = self._source.offset(Position(position.line + 1, sys.maxsize))
        left = position.character - self._units(self._prefix(position.line))
        for offset in range(start, end):
            if left <= 0:
                return offset
            left -= self._units(self._source.text[offset])
        return end

    def edits(self, text: str) -> list[types.TextEdit]:
        """Return the edits that make the text into another, line by line."""
        return [types.TextEdit(self.range(edit.range), edit.content) for edit in line_edits(self._source.text, text)]

    def _row_and_column(self, offset: int) -> tuple[int, int]:
        place = self._source.position(offset)
        return place.row - 1, place.column - 1

    def _prefix(self, row: int) -> str:
        return self._source.byte_order_mark if row == 0 else ""

    def _units(self, text: str) -> int:
        return int(self._codec.client_num_units(text))


def line_edits(old: str, new: str) -> Iterator[TextEdit]:
    """Yield the edits, sorted and disjoint, that put in place what differs: whole lines, all others are left alone."""
    before, after = _lines(old), _lines(new)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    starts = [*line_starts(old), len(old)]
    matcher = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind != "equal":
            content = "".join(after[head + new_first : head + new_last])
            yield TextEdit(Range(starts[head + first], starts[head + last]), content)


def _lines(text: str) -> list[str]:
    return [text[start:end] for start, end in pairwise((*line_starts(text), len(text)))]


def _common(one: list[str], other: list[str]) -> int:
    """Return how many lines two lists begin with in common."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)
