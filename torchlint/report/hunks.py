"""The fix of one finding as changed lines, made from the excerpts alone."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchlint.diagnostic import Position, TextEdit, TextFix
from torchlint.engine.result import Excerpts


@dataclass(frozen=True, slots=True)
class Hunk:
    """Consecutive rows with what becomes of them."""

    row: int
    """Of the first line, in the text as it is."""

    lines: tuple[tuple[str, str], ...]
    """Pairs of ``-``, ``+`` or a blank and the line without its newline."""


def hunks(fix: TextFix, excerpts: Excerpts) -> tuple[Hunk, ...]:
    """Return the changes of a fix in the order of their rows."""
    clusters: list[list[TextEdit]] = []
    last = 0
    for edit in fix.edits:
        if not clusters or excerpts.positions[edit.range.start].row > last:
            clusters.append([])
        clusters[-1].append(edit)
        last = max(last, excerpts.positions[edit.range.end].row)
    return tuple(_hunk(cluster, excerpts) for cluster in clusters)


def _hunk(edits: Sequence[TextEdit], excerpts: Excerpts) -> Hunk:
    first = excerpts.positions[edits[0].range.start].row
    last = max(excerpts.positions[edit.range.end].row for edit in edits)
    before = [excerpts.lines.get(row, "") for row in range(first, last + 1)]
    text = "\n".join(before)
    for edit in reversed(edits):
        start, end = (_offset(excerpts.positions, at, first, before) for at in (edit.range.start, edit.range.end))
        text = text[:start] + edit.content.replace("\r\n", "\n").replace("\r", "\n") + text[end:]
    changed = difflib.unified_diff(before, text.split("\n"), lineterm="", n=len(before))
    return Hunk(first, tuple((line[0], line[1:]) for line in list(changed)[3:]))


def _offset(positions: Mapping[int, Position], at: int, first: int, lines: Sequence[str]) -> int:
    """Return where in the joined lines an offset of the file lies."""
    position = positions[at]
    index = position.row - first
    return sum(len(line) + 1 for line in lines[:index]) + min(position.column - 1, len(lines[index]))
