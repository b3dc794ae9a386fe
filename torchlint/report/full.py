"""The format for people: the place, the source with the spot underlined, the message and the fix offered."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from torchlint.diagnostic import Diagnostic, Position
from torchlint.engine.result import FileResult
from torchlint.report.data import Report
from torchlint.report.styled import NOTE, Line
from torchlint.safety import Safety

_WIDEST = 140
_MOST_ROWS = 4


def lines(report: Report) -> Iterator[Line]:
    """Yield the findings, a blank line after each."""
    for result, diagnostic in report.diagnostics():
        yield heading(report, result, diagnostic)
        yield from excerpt(result, diagnostic)
        yield [(NOTE, "gutter"), (one_line(diagnostic.message), "")]
        yield from offer(diagnostic)
        yield []


def heading(report: Report, result: FileResult, diagnostic: Diagnostic) -> Line:
    """Return the line that says which finding is where."""
    where = result.where(diagnostic.start)
    return [
        (report.shown(diagnostic.path), "path"),
        (f":{where}: ", ""),
        (diagnostic.code, "code"),
        (f" {diagnostic.name}", "name"),
    ]


def offer(diagnostic: Diagnostic) -> Iterator[Line]:
    """Yield the line about the fix, if there is one."""
    fix = diagnostic.fix
    if fix is None:
        return
    words = {Safety.SAFE: "safe fix", Safety.UNSAFE: "unsafe fix", Safety.DISPLAY: "suggestion"}[fix.safety]
    why = f" ({one_line(fix.why).rstrip('.')})" if fix.why else ""
    yield [(NOTE, "gutter"), (f"{words}: ", fix.safety.value), (one_line(fix.message), ""), (why, "dim")]


def excerpt(result: FileResult, diagnostic: Diagnostic) -> Iterator[Line]:
    """Yield the rows of the finding, the spot underlined, with the row before it."""
    shown = result.excerpts.lines
    first, last = diagnostic.start.row, min(diagnostic.end.row, diagnostic.start.row + _MOST_ROWS - 1)
    rows = [row for row in range(max(1, first - 1), last + 1) if row in shown]
    if not rows:
        return
    numbers = {row: result.placed(Position(row, 1)).row for row in rows}
    width = len(str(numbers[rows[-1]]))
    blank: Line = [(" " * width + " |", "gutter")]
    yield blank
    for row in rows:
        text, shift = window(shown[row], diagnostic.start.column if row == first else 1)
        yield [(f"{numbers[row]:>{width}} | ", "gutter"), (text, "source")]
        if row < first:
            continue
        start = diagnostic.start.column - 1 if row == first else len(shown[row]) - len(shown[row].lstrip())
        end = diagnostic.end.column - 1 if row == diagnostic.end.row else len(shown[row])
        marks = underline(shown[row], start, end, shift)
        if marks.strip():
            yield [(" " * width + " | ", "gutter"), (marks, "mark")]
    if last < diagnostic.end.row:
        yield [(" " * width + " | ", "gutter"), ("...", "dim")]


def window(text: str, column: int) -> tuple[str, int]:
    """Return the part of a long line around the column, control characters made visible, and where it starts."""
    shift = max(0, column - 1 - _WIDEST // 3) if len(text) > _WIDEST else 0
    return "".join(visible(character) for character in text[shift : shift + _WIDEST]), shift


def visible(character: str) -> str:
    """Return what is printed for a character: tabs as four spaces, what a terminal would obey as a question mark."""
    if character == "\t":
        return "    "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character


def underline(text: str, start: int, end: int, shift: int) -> str:
    """Return the marks below the columns from start to end of a line that is shown from ``shift`` on."""
    before = "".join(" " * columns(character) for character in text[shift:start])
    below = "".join("^" * columns(character) for character in text[max(start, shift) : min(end, shift + _WIDEST)])
    return before + (below or "^")


def columns(character: str) -> int:
    """Return how many columns of a terminal the character takes."""
    if character == "\t":
        return 4
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def one_line(text: str) -> str:
    """Return the text with its whitespace collapsed."""
    return " ".join(text.split())
