"""What is reported: plain data on ranges of text, without trees; picklable and cacheable."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from torchlint.safety import Safety


class Severity(str, Enum):
    """How loud a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def reaches(self, level: Severity) -> bool:
        """Return whether this is at least as loud as the level."""
        order = list(Severity)
        return order.index(self) <= order.index(level)


class Range(NamedTuple):
    """Half-open range of offsets, in code points of the decoded text (without a byte order mark)."""

    start: int
    end: int


class TextEdit(NamedTuple):
    """Write ``content`` in place of ``range``; an empty range inserts."""

    range: Range
    content: str


class TextFix(NamedTuple):
    """A fix as sorted, disjoint text edits that are applied together or not at all."""

    message: str
    edits: tuple[TextEdit, ...]
    safety: Safety
    why: str = ""


class Position(NamedTuple):
    """Row and column, both 1-based, the column in code points."""

    row: int
    column: int


class Cell(NamedTuple):
    """One code cell of a notebook; the cells are checked as one text."""

    number: int
    """Among all cells of the notebook, from 1."""

    first: int
    """The row of the text on which it begins."""

    file_rows: tuple[int, ...]
    """The row in the file of each of its lines."""


_SHORTENED = re.compile(r"\.\.\. ([0-9a-f]+)\Z")
_LAYOUT = re.compile(r"[\s(),]+")


def essence(code: str) -> str:
    """Return code without white space, parentheses and commas, which formatters add and take; of a digest itself."""
    shortened = _SHORTENED.search(code)
    return shortened[1] if shortened else _LAYOUT.sub("", code)


class Anchor(NamedTuple):
    """What a finding is known again by when its lines have moved."""

    scope: str = ""
    """Dotted name of the class or function that it is in, empty at the level of the module."""

    statement: str = ""
    """Its statement, or the header of a compound one, without what formatters change; shortened if long."""


class Diagnostic(NamedTuple):
    """One finding at its place in one file."""

    code: str
    name: str
    severity: Severity
    message: str
    path: str
    """As given on the command line or found below it."""

    range: Range
    start: Position
    end: Position
    noqa_row: int
    """The row on which a suppression comment silences this finding (others of its statement do too)."""

    fix: TextFix | None = None

    suppression_rows: tuple[int, ...] = ()
    """All rows on which a suppression comment silences this finding: ends of its statement, or a header's rows."""

    anchor: Anchor = Anchor()
