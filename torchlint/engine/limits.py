"""Which findings of a run count: not those that a baseline knows, only those on lines that changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torchlint.diagnostic import Cell, Diagnostic, Range, TextEdit
from torchlint.project.baseline import Entry, counted, matched, missing
from torchlint.suppress import SYNTAX_ERROR

if TYPE_CHECKING:
    from torchlint.edits.text import Shift
    from torchlint.engine.result import FileResult
    from torchlint.project.changes import Changes
    from torchlint.source import Source


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits the findings of the files of a run, by their paths."""

    known: Mapping[str, Mapping[Entry, int]] = field(default_factory=dict)
    changes: Mapping[str, Changes] | None = None
    """None: every line counts."""

    def of(self, path: str) -> FileLimits | None:
        """Return what limits the findings of one file, None if nothing does."""
        known = self.known.get(path, {})
        if not known and self.changes is None:
            return None
        return FileLimits(known, self.changes.get(path) if self.changes is not None else None)

    def applied(self, result: FileResult) -> FileResult:
        """Return the result of a file with the findings that count, and how many others there are."""
        limits = self.of(result.path)
        if limits is None or not result.diagnostics:
            return result
        fates = limits.within(result.cells).fates(result.diagnostics)
        return replace(
            result,
            diagnostics=tuple(d for d, fate in zip(result.diagnostics, fates, strict=True) if fate is None),
            baselined=fates.count("known"),
            unchanged=fates.count("unchanged"),
        )


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What limits the findings of one file."""

    known: Mapping[Entry, int]
    changes: Changes | None

    def within(self, cells: Sequence[Cell]) -> FileLimits:
        """Return the limits in the rows of the text that the cells of a notebook make, these without cells."""
        return replace(self, changes=self.changes.in_cells(cells)) if cells and self.changes else self

    def fates(self, diagnostics: Sequence[Diagnostic]) -> list[str | None]:
        """Return for each finding why it does not count (``known`` or ``unchanged``), None if it does."""
        known = matched(diagnostics, self.known)
        return [
            "known" if is_known else None if self._is_changed(diagnostic) else "unchanged"
            for diagnostic, is_known in zip(diagnostics, known, strict=True)
        ]

    def _is_changed(self, diagnostic: Diagnostic) -> bool:
        """Return whether a finding stands on a changed line; a syntax error may come from any of them."""
        if self.changes is None or diagnostic.code == SYNTAX_ERROR:
            return True
        return self.changes.touch(diagnostic.start.row, diagnostic.end.row)

    def scope(self, source: Source, diagnostics: Sequence[Diagnostic]) -> Scope:
        """Return which of the findings in a text count, in a form that follows its edits."""
        from torchlint.edits.text import disjoint

        known = matched(diagnostics, self.known)
        held = frozenset(
            (diagnostic.code, diagnostic.range.start)
            for diagnostic, is_known in zip(diagnostics, known, strict=True)
            if is_known
        )
        changes = self.within(source.cells()).changes
        return Scope(held, None if changes is None else disjoint(changes.ranges(source)))


@dataclass(frozen=True, slots=True)
class Scope:
    """Which findings of a text count while it is being fixed."""

    held: frozenset[tuple[str, int]] = frozenset()
    """Code and offset of the known ones."""

    changed: tuple[Range, ...] | None = None
    """Where the text changed, sorted and disjoint; None: everywhere."""

    def counts(self, diagnostic: Diagnostic) -> bool:
        """Return whether a finding counts."""
        if (diagnostic.code, diagnostic.range.start) in self.held:
            return False
        if self.changed is None or diagnostic.code == SYNTAX_ERROR:
            return True
        place = diagnostic.range
        index = bisect_left(self.changed, place.end, key=lambda change: change.start)
        return index > 0 and self.changed[index - 1].end > place.start

    def after(self, edits: Sequence[TextEdit], shift: Shift) -> Scope:
        """Return the scope in the text after the edits, which are changes themselves."""
        from torchlint.edits.text import disjoint

        held = frozenset((code, shift.offset(start)) for code, start in self.held)
        if self.changed is None:
            return Scope(held)
        moved = [Range(shift.offset(place.start), shift.end(place.end)) for place in self.changed]
        return Scope(held, disjoint([*moved, *(shift.content(index) for index in range(len(edits)))]))


def removable(result: FileResult, known: Mapping[Entry, int], looked_for: Iterable[str]) -> int:
    """Return how many findings are known of a file and were looked for but not found: they can leave the baseline."""
    codes = set(looked_for) | {SYNTAX_ERROR}
    return missing({key: count for key, count in known.items() if key.code in codes}, counted(result.diagnostics))
