"""Patterns of paths, written as in .gitignore."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from torchlint.settings import Settings

if TYPE_CHECKING:
    import pathspec

_SPECIAL = frozenset("*?[]!/\\")


class Patterns:
    """Answers whether patterns match a path; plain names, which most are, cost one look-up."""

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        """Take patterns that are relative to a folder; absolute ones below it mean the same."""
        self._root = os.path.abspath(root)
        below = with_slashes(self._root).rstrip("/") + "/"
        lines = [with_slashes(pattern) for pattern in patterns]
        lines = [pattern.replace(below, "/", 1) if pattern.startswith(below) else pattern for pattern in lines]
        lines = [line.removeprefix("./").rstrip("/") if _is_path(line) else line for line in lines]
        self._names = frozenset(line for line in lines if not _SPECIAL & set(line))
        others = [line for line in lines if line not in self._names]
        self._spec = git_ignore_spec(others) if others else None

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a pattern matches the (absolute) path itself, or a folder that it lies in."""
        relative = self._relative(path)
        if not self._names.isdisjoint(relative.split(os.sep)):
            return True
        return self._match_spec(relative, is_folder)

    def match_entry(self, path: str, name: str, *, is_folder: bool) -> bool:
        """Return the same for an entry of a folder that is known not to match."""
        if name in self._names:
            return True
        return self._spec is not None and self._match_spec(self._relative(path), is_folder)

    def _relative(self, path: str) -> str:
        try:
            return os.path.relpath(path, self._root)
        except ValueError:  # on another drive, so that only names can match
            return os.path.join(os.pardir, os.path.splitdrive(path)[1].lstrip(os.sep))

    def _match_spec(self, relative: str, is_folder: bool) -> bool:
        if self._spec is None or relative.startswith(".."):
            return False
        # The first releases of 0.12 say None where no pattern matches.
        return bool(self._spec.match_file(with_slashes(relative) + ("/" if is_folder else "")))


def git_ignore_spec(patterns: Iterable[str]) -> pathspec.GitIgnoreSpec:
    """Return the compiled patterns.

    Raises:
        ValueError: git would not understand one of them.
    """
    import pathspec  # only now: it is a tenth of the time to start, and plain names need none

    return pathspec.GitIgnoreSpec.from_lines(patterns)


def with_slashes(path: str, separator: str = os.sep) -> str:
    """Return a path or a pattern with the slashes that patterns have; where the separator is one, it stays as it is."""
    return path.replace(separator, "/")


def _is_path(pattern: str) -> bool:
    return not pattern.startswith(("!", "#"))


@lru_cache(maxsize=64)
def _compiled(pattern: str, root: str) -> Patterns:
    return Patterns((pattern,), root)


def ignored_selectors(settings: Settings, path: str) -> tuple[str, ...]:
    """Return the selectors that ``per-file-ignores`` switches off in a file."""
    absolute, root = os.path.abspath(path), settings.root or os.getcwd()
    found: list[str] = []
    for pattern, selectors in settings.per_file_ignores.items():
        wanted = not pattern.startswith("!")
        if _compiled(pattern.removeprefix("!"), root).match(absolute) is wanted:
            found += selectors
    return tuple(dict.fromkeys(found))
