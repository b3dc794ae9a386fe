"""Which lines changed since a revision: committed, staged, in the working tree, and in files git does not know."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from torchlint.diagnostic import Cell, Range
from torchlint.project.git import Git, GitError, find_git
from torchlint.source import line_starts

if TYPE_CHECKING:
    from torchlint.source import Source

_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_FILE = (b"+++ n/", b'+++ "n/')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class ChangesError(Exception):
    """What changed cannot be known; the message says in one line why and what to do."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in one file."""

    rows: tuple[tuple[int, int], ...] = ()
    """First and last row of each part that is new or different."""

    gaps: tuple[int, ...] = ()
    """The row before each place where rows are gone."""

    everything: bool = False
    """Whether all of the file is new."""

    def __bool__(self) -> bool:
        return self.everything or bool(self.rows) or bool(self.gaps)

    def touch(self, first: int, last: int) -> bool:
        """Return whether any of these rows changed, or a row between them is gone."""
        if self.everything:
            return True
        changed = any(start <= last and first <= end for start, end in self.rows)
        return changed or any(first <= row < last for row in self.gaps)

    def in_cells(self, cells: Sequence[Cell]) -> Changes:
        """Return the changes in the rows of the text that the cells of a notebook make."""
        if self.everything:
            return self
        rows = [(cell.first + index, row) for cell in cells for index, row in enumerate(cell.file_rows)]
        changed = [(row, row) for row, file_row in rows if any(first <= file_row <= last for first, last in self.rows)]
        return Changes(tuple(changed), tuple(row for row, file_row in rows if file_row in self.gaps))

    def ranges(self, source: Source) -> Iterator[Range]:
        """Yield where in a text the changed rows stand; an empty range stands for what is gone."""
        starts = (*line_starts(source.text), len(source.text))
        if self.everything:
            yield Range(0, len(source.text))
            return
        for first, last in self.rows:
            yield Range(_start(starts, first), _start(starts, last + 1))
        for row in self.gaps:
            yield Range(_start(starts, row + 1), _start(starts, row + 1))


def _start(starts: Sequence[int], row: int) -> int:
    return starts[min(max(row, 1), len(starts)) - 1]


def changes_since(revision: str, paths: Iterable[str]) -> dict[str, Changes]:
    """Return what changed in each of the files since a revision; files without changes are left out.

    Raises:
        ChangesError: git, the repository or the revision is missing.
    """
    found: dict[str, Changes] = {}
    for root, inside in _by_repository(paths).items():
        try:
            found.update(_Repository(find_git(root), revision).changes(inside))
        except GitError as error:
            raise ChangesError(f"--since {revision}: {error}") from error
    return found


def _by_repository(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths by the nearest folder above that is a repository's; where there is none, git may know more."""
    roots: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for path in paths:
        folder = os.path.dirname(os.path.realpath(path))
        found.setdefault(_root(folder, roots), []).append(path)
    return found


def _root(folder: str, roots: dict[str, str]) -> str:
    if folder not in roots:
        above = os.path.dirname(folder)
        is_root = os.path.exists(os.path.join(folder, ".git"))
        roots[folder] = folder if is_root else os.getcwd() if above == folder else _root(above, roots)
    return roots[folder]


class _Repository:
    """The questions to one repository."""

    def __init__(self, git: Git, revision: str) -> None:
        try:
            top = os.fsdecode(git.ask("rev-parse", "--show-toplevel")).rstrip("\r\n")
        except GitError as error:
            hint = "; --since needs the files to be in one" if "not a git repository" in str(error) else ""
            raise GitError(f"{error}{hint}") from error
        self._top = os.path.realpath(top)
        self._git = Git(git.program, self._top).without_filters()
        self._commit = self._resolved(revision)

    def _resolved(self, revision: str) -> str:
        if revision and not revision.startswith("-"):
            try:
                return self._git.ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
            except (GitError, ValueError):
                pass
        shallow = self._git.ask("rev-parse", "--is-shallow-repository").strip() == b"true"
        raise GitError(f"there is no such revision in {self._top}; {self._hint(revision, shallow)}")

    def _hint(self, revision: str, shallow: bool) -> str:
        if shallow:
            return "this is a shallow clone: fetch more (git fetch --unshallow; in GitHub Actions: fetch-depth: 0)"
        if ".." in revision:
            return "give one revision, such as the output of git merge-base main HEAD"
        remote = f"origin/{revision}"
        if not revision.startswith("-") and self._git.answers(
            "rev-parse", "--verify", "--quiet", f"{remote}^{{commit}}"
        ):
            return f"did you mean {remote}?"
        return "git log and git branch --all list what there is"

    def changes(self, paths: Sequence[str]) -> Iterator[tuple[str, Changes]]:
        """Yield the paths that changed, with what changed."""
        names = {path: self._name(path) for path in paths}
        specs = sorted({_spec(name) for name in names.values()})
        changed = parse_diff(self._diff(specs))
        tracked = set(self._git.ask("ls-files", "-z", "--cached", "--", *specs).split(b"\0"))
        for path, name in names.items():
            key = os.fsencode(name)
            changes = changed.get(key, Changes()) if key in tracked else Changes(everything=True)
            if changes:
                yield path, changes

    def _diff(self, specs: Sequence[str]) -> bytes:
        options = "--no-color --no-ext-diff --no-textconv --text --unified=0 --inter-hunk-context=0 --find-renames"
        submodules = "--ignore-submodules=all --submodule=short"
        prefixes = "--src-prefix=o/ --dst-prefix=n/"
        words = f"diff {options} {submodules} {prefixes}".split()
        try:
            return self._git.ask(*words, self._commit, "--", *specs)
        except GitError as error:
            if not self._git.answers("config", "--get-regexp", r"^remote\..*\.promisor$"):
                raise
            hint = "this clone is a partial one: run git diff with the revision once, which fetches what is missing"
            raise GitError(f"{error}; {hint}") from error

    def _name(self, path: str) -> str:
        """Return a path as git knows it."""
        try:
            return PurePath(os.path.relpath(os.path.realpath(path), self._top)).as_posix()
        except ValueError as error:  # another drive
            raise GitError(f"{path} is not below {self._top}") from error


def _spec(name: str) -> str:
    """Return what limits git to files like this one: with the same suffix, or else to it alone."""
    suffix = PurePath(name).suffix
    return f":(top,glob)**/*{suffix}" if suffix.isascii() and suffix[1:].isalnum() else f":(top,literal){name}"


def parse_diff(diff: bytes) -> Mapping[bytes, Changes]:
    """Return the changed rows of each file in a diff without context, by the file's new name."""
    rows: dict[bytes, list[tuple[int, int]]] = {}
    gaps: dict[bytes, list[int]] = {}
    name: bytes | None = None
    within = 0
    for line in diff.split(b"\n"):
        hunk = _HUNK.match(line) if line.startswith(b"@@ ") and within <= 0 else None
        if hunk and name is not None:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            if count:
                rows.setdefault(name, []).append((first, first + count - 1))
            else:
                gaps.setdefault(name, []).append(first)
            within = _length(line)
        elif within > 0 and line[:1] in b"+- ":
            within -= 1
        elif line.startswith(_FILE):
            name = _unquoted(line[4:])[2:]
        elif line.startswith(b"+++ "):
            name = None  # the file is gone
    return {name: Changes(tuple(rows.get(name, ())), tuple(gaps.get(name, ()))) for name in {**rows, **gaps}}


def _length(header: bytes) -> int:
    """Return how many lines a hunk without context has."""
    counts = re.findall(rb"[-+]\d+(?:,(\d+))?", header.split(b" @@", 1)[0])
    return sum(int(count or 1) for count in counts)


def _unquoted(name: bytes) -> bytes:
    """Return a file's name as git means it: a tab ends one with blanks, quotes hold one with odd characters."""
    if not name.startswith(b'"'):
        return name.removesuffix(b"\t")

    def character(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8)]) if code.isdigit() else _ESCAPES.get(code, code)

    return _ESCAPE.sub(character, name.rstrip(b"\t")[1:-1])
