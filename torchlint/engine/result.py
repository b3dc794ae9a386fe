"""What checking one file gives: plain, picklable data."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath

from torchlint.diagnostic import Diagnostic, Position


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

    @property
    def uses_torch(self) -> bool:
        """Whether torch, or a framework built on it, is mentioned."""
        return self.status in (Status.CHECKED, Status.SCREENED)
