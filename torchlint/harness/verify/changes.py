"""The fixes that are tried, one by one or together, computed in memory on the user's files."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.engine.plan import Plan, PlanError, make_plan
from torchlint.engine.result import FileResult
from torchlint.harness.errors import HarnessError
from torchlint.source import Source, SourceError, read_source


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One fix, named by where its finding stands in the original file."""

    path: Path
    row: int
    code: str
    ordinal: int
    """Among the findings of this rule on this row."""

    name: str
    message: str
    """What the fix does."""

    def __str__(self) -> str:
        return f"{self.path.name}:{self.row} {self.code} {self.name}"


@dataclass(frozen=True, slots=True)
class File:
    """One file that has fixes."""

    source: Source
    plan: Plan
    unsafe: bool

    @property
    def path(self) -> Path:
        """The absolute path."""
        absolute = Path(self.source.path).absolute()
        return absolute.parent.resolve() / absolute.name


@dataclass(frozen=True, slots=True)
class Fixes:
    """All fixes of the project, and the files that any part of them makes."""

    files: tuple[File, ...]
    changes: tuple[Change, ...]

    def without(self, left_out: Collection[Change]) -> dict[Path, bytes]:
        """Return the data of the files that change when all fixes but these are applied."""
        found = {}
        for file in self.files:
            text, _ = _fixed(file, {change for change in left_out if change.path == file.path})
            if text != file.source.text:
                found[file.path] = file.source.encode(text)
        return found

    def only(self, kept: Collection[Change]) -> dict[Path, bytes]:
        """Return the data of the files that change when only these fixes are applied."""
        return self.without([change for change in self.changes if change not in kept])

    def digests(self) -> Mapping[Path, str]:
        """Return for each file the digest of what it held when the fixes were computed."""
        return {file.path: file.source.data_digest for file in self.files}

    def diff(self, root: Path) -> str:
        """Return the diff that all fixes make."""
        parts: list[str] = []
        for file in self.files:
            name = file.path.relative_to(root).as_posix()
            before, after = (text.splitlines(keepends=True) for text in (file.source.text, _fixed(file, set())[0]))
            parts += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
        return "".join(parts)


def collect(paths: Sequence[str], overrides: Mapping[str, Any], *, unsafe: bool, isolated: bool) -> Fixes:
    """Return the fixes that ``torchlint fix`` with the same options would apply.

    Raises:
        HarnessError: a setting is wrong or a file cannot be read.
    """
    try:
        planned = make_plan(list(paths), overrides=overrides, isolated=isolated, config=None)
    except PlanError as error:
        raise HarnessError(str(error)) from error
    if planned.problems:
        raise HarnessError(str(planned.problems[0]))
    files, changes = [], []
    for task in planned.tasks:
        try:
            file = File(read_source(task.path), planned.plans[task.plan], unsafe)
        except SourceError as error:
            raise HarnessError(str(error)) from error
        text, applied = _fixed(file, set())
        if text != file.source.text:
            files.append(file)
            changes += applied
    return Fixes(tuple(files), tuple(sorted(set(changes))))


def _fixed(file: File, left_out: Collection[Change]) -> tuple[str, list[Change]]:
    """Return the file's text with all fixes applied but those left out, and the changes that were made."""
    seen: dict[tuple[str, str, int, int], Change] = {}

    def check(source: Source, *arguments: Any) -> FileResult:
        result = check_file(source, *arguments)
        rows = _original_rows(file.source.text, source.text)
        counts: dict[tuple[str, int], int] = {}
        kept = []
        for diagnostic in result.diagnostics:
            change = _change(file.path, diagnostic, rows, counts)
            seen[_place(diagnostic)] = change
            kept.append(diagnostic._replace(fix=None) if change in left_out else diagnostic)
        return replace(result, diagnostics=tuple(kept))

    rules = file.plan.rules()
    fixed = fix_file(file.source, file.plan.settings, rules, file.plan.target, unsafe=file.unsafe, check=check)
    return fixed.text, [seen[_place(diagnostic)] for diagnostic in fixed.applied if _place(diagnostic) in seen]


def _place(diagnostic: Diagnostic) -> tuple[str, str, int, int]:
    return diagnostic.code, diagnostic.message, diagnostic.range.start, diagnostic.range.end


def _change(path: Path, diagnostic: Diagnostic, rows: Sequence[int], counts: dict[tuple[str, int], int]) -> Change:
    row = rows[min(diagnostic.start.row, len(rows)) - 1] if rows else diagnostic.start.row
    ordinal = counts[diagnostic.code, row] = counts.get((diagnostic.code, row), -1) + 1
    message = diagnostic.fix.message if diagnostic.fix else diagnostic.message
    return Change(path, row, diagnostic.code, ordinal, diagnostic.name, message)


def _original_rows(original: str, now: str) -> list[int]:
    """Return for each row of a text that fixes have changed the row of the original that it came from."""
    before, after = original.splitlines(), now.splitlines()
    if before == after:
        return list(range(1, len(before) + 1))
    rows = [1] * len(after)
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for j in range(j1, j2):
            rows[j] = min(i1 + (j - j1), max(i1, i2 - 1)) + 1 if tag != "equal" else i1 + (j - j1) + 1
    return rows
