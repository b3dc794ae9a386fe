"""The fixes of one file, one after the other, each only if somebody wants it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.diagnostic import Diagnostic, TextEdit
from torchlint.edits.text import Shift
from torchlint.engine.fix import MOST_PASSES, FixRun
from torchlint.engine.outcome import FixOutcome
from torchlint.source import digest
from torchlint.syntax.parse import run_with_large_stack

if TYPE_CHECKING:
    from torchlint.engine.limits import FileLimits
    from torchlint.engine.result import FileResult
    from torchlint.source import Source


@dataclass(frozen=True, slots=True)
class Proposal:
    """One fix that passed every check, with all that follows from it."""

    diagnostic: Diagnostic
    result: FileResult
    """What is found in the text as it is before the fix."""

    before: str
    after: str
    """The file before and after it, with its byte order mark."""

    data: bytes
    """The file after it, encoded as the file was."""


class Steps:
    """The state of a file between two decisions."""

    def __init__(
        self, source: Source, check: Callable[[Source], FileResult], *, unsafe: bool, limits: FileLimits | None = None
    ) -> None:
        self._source = source
        self._run = run_with_large_stack(lambda: _StepRun(source, check, unsafe, limits))
        self._next: _StepRun | None = None
        self._declined: list[Diagnostic] = []
        self._most = MOST_PASSES * len(self._run.open())
        self.digest = source.data_digest
        """Of the file as it is after the fixes that were accepted."""

    def propose(self) -> Proposal | None:
        """Return the next fix that is sound, None if there is none.

        Raises:
            SourceError: the encoding of the file cannot hold the fix.
        """
        if self._run.accepted() >= self._most:
            return None
        return run_with_large_stack(self._propose)

    def _propose(self) -> Proposal | None:
        for diagnostic in self._run.open():
            self._next = self._run.with_fix(diagnostic)
            if self._next is not None:
                before, after = self._run.text(), self._next.text()
                data = self._source.encode(after)
                return Proposal(diagnostic, self._run.result(), self._written(before), self._written(after), data)
        return None

    def accept(self, proposal: Proposal) -> None:
        """Take the fix that was proposed last."""
        if self._next is not None:
            self._run, self._next = self._next, None
        self.digest = digest(proposal.data)

    def decline(self, proposal: Proposal) -> None:
        """Leave the finding of a proposal as it is, and propose it no more."""
        self._run.close(proposal.diagnostic)
        self._declined.append(proposal.diagnostic)

    def outcome(self) -> FixOutcome:
        """Return what became of the file."""
        fixed = self._run.fixed()
        return FixOutcome(
            fixed.result,
            applied=fixed.applied,
            refused=fixed.refused,
            declined=tuple(self._declined),
            before=self._written(self._source.text),
            after=self._written(fixed.text),
            digest=self.digest,
        )

    def _written(self, text: str) -> str:
        return self._source.whole(text)


class _StepRun(FixRun):
    """A run that is copied before each fix, so that it can be as if the fix had not been tried."""

    _closed: frozenset[tuple[str, int]] = frozenset()
    """Code and offset of the findings that are to stay."""

    def open(self) -> Sequence[Diagnostic]:
        """Return the findings that can be fixed, in the order of their places."""
        return list(self._todo()) or self._second_chance()

    def close(self, diagnostic: Diagnostic) -> None:
        """Leave a finding as it is."""
        self._closed |= {(diagnostic.code, diagnostic.range.start)}

    def with_fix(self, diagnostic: Diagnostic) -> _StepRun | None:
        """Return the run after this fix alone and what follows from it, None if a check refuses it."""
        self._refused = dict(self._refused)  # the run that this is a copy of keeps its own
        if self._is_opposed(diagnostic):
            return None
        if not self._is_sound([diagnostic]) or self._attempt is None:
            key = (diagnostic.code, diagnostic.range.start)
            self._refused = {**self._refused, key: (diagnostic, self._reasons[diagnostic])}
            return None
        after = copy.copy(self)
        after._applied = [*self._applied, diagnostic]
        after._accept(*self._attempt)
        after._remove_orphans()
        return after

    def accepted(self) -> int:
        """Return how many fixes were applied."""
        return len(self._applied)

    def text(self) -> str:
        """Return the text as it is now."""
        return self._source.text

    def result(self) -> FileResult:
        """Return what is found in it."""
        return self._result

    def _todo(self) -> Iterator[Diagnostic]:
        return (d for d in super()._todo() if (d.code, d.range.start) not in self._closed)

    def _accept(self, edits: tuple[TextEdit, ...], result: FileResult) -> None:
        shift = Shift(edits)
        self._closed = frozenset((code, shift.offset(start)) for code, start in self._closed)
        super()._accept(edits, result)
