"""Comments that silence what is found: put where they count, merged with what is there, and each one proven."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from torchlint.diagnostic import Diagnostic, Range, TextEdit
from torchlint.edits.plan import largest_sound
from torchlint.edits.text import Shift, apply_edits, line_end, line_start, merged
from torchlint.engine.limits import FileLimits, Scope
from torchlint.source import line_starts
from torchlint.suppress import SYNTAX_ERROR, UNUSED, find_suppressions

if TYPE_CHECKING:
    from torchlint.engine.result import FileResult
    from torchlint.source import Source

Key: TypeAlias = "tuple[str, int, int]"
"""Code, row and column of a finding: comments at the ends of rows move none of them."""

NO_PLACE = "has no row of its statement that can end with a comment"
_CANNOT = "cannot be silenced by a comment"
_STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A text with its comments."""

    text: str
    result: FileResult
    """What is still found."""

    silenced: tuple[Diagnostic, ...] = ()
    removed: tuple[Diagnostic, ...] = ()
    """Unused suppressions that went."""

    left: tuple[tuple[Diagnostic, str], ...] = ()
    """What could not be silenced, and why."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The findings that one comment silences."""

    row: int
    findings: tuple[Diagnostic, ...]
    edit: TextEdit


def add_ignores(
    source: Source, check: Callable[[Source], FileResult], known: Mapping[str, str], limits: FileLimits | None = None
) -> Ignored:
    """Return the text with a comment for each finding that counts; unused suppressions are removed.

    ``known`` gives the name of each code.
    """
    return _Run(source, check, known, limits).run()


@dataclass(slots=True)
class _Run:
    _source: Source
    _check: Callable[[Source], FileResult]
    _known: Mapping[str, str]
    _limits: FileLimits | None
    _result: FileResult = field(init=False)
    _scope: Scope = field(init=False)
    _tried: set[tuple[Key, int]] = field(default_factory=set)

    def run(self) -> Ignored:
        self._result = self._check(self._source)
        found = self._result.diagnostics
        self._scope = self._limits.scope(self._source, found) if self._limits else Scope()
        removed = self._remove_unused()
        wanted = {key(finding): finding for finding in self._counted() if finding.code not in (SYNTAX_ERROR, UNUSED)}
        while groups := self._groups():
            sound = largest_sound(groups, self._is_sound)
            self._tried |= {(key(finding), group.row) for group in groups for finding in group.findings}
            self._accept(edits_of(sound))
        rest = {key(finding) for finding in self._counted()}
        silenced = tuple(finding for place, finding in wanted.items() if place not in rest)
        left = tuple((d, NO_PLACE if key(d) in wanted else _CANNOT) for d in self._counted())
        result = replace(self._result, diagnostics=tuple(self._counted()))
        return Ignored(self._source.text, result, silenced, removed, left)

    def _counted(self) -> list[Diagnostic]:
        return [finding for finding in self._result.diagnostics if self._scope.counts(finding)]

    def _remove_unused(self) -> tuple[Diagnostic, ...]:
        """Remove the unused suppressions and return them."""
        unused = [finding for finding in self._counted() if finding.code == UNUSED and finding.fix]
        edits = merged(edit for finding in unused for edit in (finding.fix.edits if finding.fix else ()))
        if not edits:
            return ()
        self._accept(edits)
        return tuple(unused)

    def _accept(self, edits: Sequence[TextEdit]) -> None:
        if not edits:
            return
        self._scope = self._scope.after(edits, Shift(edits))
        self._source = replace(self._source, text=apply_edits(self._source.text, edits))
        self._result = self._check(self._source)

    def _groups(self) -> list[_Group]:
        """Return the comments to try next: for each finding on a row that was not tried for it."""
        ours = {
            comment.row: comment.range
            for comment in find_suppressions(self._source, self._known).comments
            if comment.ours and comment.codes is not None
        }
        free = open_rows(self._source.text)
        by_row: dict[int, list[Diagnostic]] = {}
        for finding in self._counted():
            rows = sorted(self._rows(finding) & free, key=lambda row: (row not in ours, -row))
            if finding.code not in (SYNTAX_ERROR, UNUSED) and rows:
                by_row.setdefault(rows[0], []).append(finding)
        return [
            _Group(row, tuple(findings), self._edit(row, {finding.code for finding in findings}, ours.get(row)))
            for row, findings in sorted(by_row.items())
        ]

    def _rows(self, finding: Diagnostic) -> set[int]:
        rows = finding.suppression_rows or (finding.noqa_row,)
        return {row for row in rows if (key(finding), row) not in self._tried}

    def _edit(self, row: int, codes: Iterable[str], ours: Range | None) -> TextEdit:
        """Return the edit that adds codes to a comment of ours, or a comment to a row."""
        text = self._source.text
        if ours is not None:
            inner = Range(text.index("[", ours.start) + 1, ours.end - 1)
            before = text[inner.start : inner.end].strip(" \t,")
            return TextEdit(inner, ", ".join([*filter(None, [before]), *sorted(codes)]))
        start = line_starts(text)[row - 1]
        end = line_end(text, start)
        code = text[line_start(text, start) : end].rstrip()
        return TextEdit(Range(start + len(code), end), f"  # torchlint: ignore[{', '.join(sorted(codes))}]")

    def _is_sound(self, groups: Sequence[_Group]) -> bool:
        """Return whether the comments silence what they are for, and nothing else comes of them."""
        edits = edits_of(groups)
        after = self._check(replace(self._source, text=apply_edits(self._source.text, edits)))
        silenced = Counter(key(finding) for group in groups for finding in group.findings)
        expected = Counter(map(key, self._result.diagnostics)) - silenced
        found = Counter(map(key, after.diagnostics))
        return not (found - expected) and len(after.errors) <= len(self._result.errors)


def edits_of(groups: Iterable[_Group]) -> tuple[TextEdit, ...]:
    """Return the edits of comments on different rows, sorted."""
    return tuple(sorted(group.edit for group in groups))


def key(finding: Diagnostic) -> Key:
    """Return what a finding is known by while comments are added."""
    return finding.code, finding.start.row, finding.start.column


def open_rows(text: str) -> set[int]:
    """Return the rows that can end with a comment: not in a string, not before a continuation by a backslash."""
    rows: set[int] = set()
    try:
        rows.update(_ends(text))
    except (tokenize.TokenError, SyntaxError, IndexError, StopIteration):
        return set()
    return rows


def _ends(text: str) -> Iterator[int]:
    depth = 0
    for token in tokenize.generate_tokens(iter(list(io.StringIO(text, newline=""))).__next__):
        depth += (token.type in _STRING_STARTS) - (token.type in _STRING_ENDS)
        if depth == 0 and token.type in (tokenize.NEWLINE, tokenize.NL):
            yield token.start[0]
