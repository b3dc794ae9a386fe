"""What fixing one file gives: plain, picklable data."""

from __future__ import annotations

from dataclasses import dataclass

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """The file as it is and as it would be; nothing is written yet."""

    result: FileResult
    """What remains to be reported after the fixes."""

    applied: tuple[Diagnostic, ...] = ()
    refused: tuple[tuple[Diagnostic, str], ...] = ()
    """Findings whose fix could not be applied, and why."""

    declined: tuple[Diagnostic, ...] = ()
    """Findings whose fix was offered and not wanted."""

    before: str = ""
    """The text with its byte order mark, if it has one, so that a diff of it is one of the file."""

    after: str = ""
    data: bytes = b""
    """The fixed file, encoded as the file was."""

    digest: str = ""
    """Of the file that was read: what is written replaces nothing else."""

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.result.path

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after
