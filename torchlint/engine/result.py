"""What checking one file gives: plain, picklable data."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath

from torchlint.diagnostic import Cell, Diagnostic, Position


class Status(str, Enum):
    """How far a file came."""

    CHECKED = "checked"
    """Parsed, and seen by at least one rule."""

    SCREENED = "screened"
    """Uses torch, but holds nothing that an enabled rule could react to."""

    NO_TORCH = "no-torch"

    SKIPPED = "skipped"
    """Left out on purpose; ``note`` says why."""

    FAILED = "failed"
    """Could not be read or did not survive; ``errors`` says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that kept a file from being checked as it should: exit code 2."""

    path: str
    message: str
    details: str = ""
    """The traceback, for a report to the authors."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def internal_problem(path: str, where: str, error: BaseException) -> Problem:
    """Return the one-line account of an exception in torchlint itself, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    summary = f"{type(error).__name__}: {error}".rstrip(": ").partition("\n")[0]
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-20))
    return Problem(path, f"internal error in {where}: {summary}{place}", details)


def time_limit_problem(path: str, seconds: float) -> Problem:
    """Return the one-line account of a file that took too long."""
    return Problem(path, f"given up after {seconds:g} s; `file-timeout` sets this limit (0 is none)")


@dataclass(frozen=True, slots=True)
class Excerpts:
    """The parts of a text that reports show, so that no report reads a file."""

    lines: Mapping[int, str] = field(default_factory=dict)
    """Row to line (without its newline), for the rows of findings, one row before each, and the rows of edits."""

    positions: Mapping[int, Position] = field(default_factory=dict)
    """Offset to position, for both ends of every edit."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """All that there is to say about one file."""

    path: str
    status: Status
    diagnostics: tuple[Diagnostic, ...] = ()
    """Sorted by place."""

    suppressed: int = 0
    baselined: int = 0
    """Findings that a baseline knows; they are none of the diagnostics."""

    unchanged: int = 0
    """Findings on lines that did not change, where only those that did are asked for."""

    note: str = ""
    warnings: tuple[str, ...] = ()
    errors: tuple[Problem, ...] = ()
    excerpts: Excerpts = field(default_factory=Excerpts)
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds for each stage and rule."""

    digest: str = ""
    """Of the bytes that were checked; empty where there were none to read."""

    cells: tuple[Cell, ...] = ()
    """The code cells of a notebook that has findings."""

    @property
    def uses_torch(self) -> bool:
        """Whether torch, or a framework built on it, is mentioned."""
        return self.status in (Status.CHECKED, Status.SCREENED)

    def cell(self, position: Position) -> Cell | None:
        """Return the cell of a position, None outside notebooks."""
        return next((cell for cell in reversed(self.cells) if cell.first <= position.row), None)

    def placed(self, position: Position) -> Position:
        """Return a position as people count: in its cell."""
        cell = self.cell(position)
        return Position(position.row - cell.first + 1, position.column) if cell else position

    def where(self, position: Position) -> str:
        """Return a position in words: ``3:5``, or ``cell 2:3:5`` in a notebook."""
        cell, placed = self.cell(position), self.placed(position)
        return (f"cell {cell.number}:" if cell else "") + f"{placed.row}:{placed.column}"

    def in_file(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a finding as services want it, at the rows of the file: in a notebook without columns and fix."""
        if not self.cells:
            return diagnostic
        start, end = (Position(self._file_row(each), 1) for each in (diagnostic.start, diagnostic.end))
        return diagnostic._replace(start=start, end=end, fix=None)

    def _file_row(self, position: Position) -> int:
        cell = self.cell(position)
        return cell.file_rows[min(position.row - cell.first, len(cell.file_rows) - 1)] if cell else position.row


def failed(problem: Problem) -> FileResult:
    """Return the result of a file that could not be checked."""
    return FileResult(problem.path, Status.FAILED, errors=(problem,))
