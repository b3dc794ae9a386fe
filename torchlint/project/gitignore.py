"""What git ignores, by the .gitignore files of a repository and its .git/info/exclude."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from torchlint.project.patterns import git_ignore_spec

if TYPE_CHECKING:
    import pathspec


class GitIgnore(NamedTuple):
    """The patterns in force in one folder, the nearest last: they overrule the others."""

    layers: tuple[tuple[str, pathspec.GitIgnoreSpec], ...] = ()
    """Absolute folders, and patterns relative to each."""

    @staticmethod
    def nothing() -> GitIgnore:
        """Return what ignores nothing."""
        return GitIgnore()

    @staticmethod
    def around(folder: str) -> GitIgnore:
        """Return the patterns of the repository around an absolute folder, the folder's own not included.

        A folder that is ignored itself, but was asked for, is looked into as if nothing around it were there.
        """
        above = _folders_above(folder)
        if not above:
            return GitIgnore._excludes_of(folder)
        found = GitIgnore._excludes_of(above[0])
        for parent in above:
            found = found.below(parent)
        inside = [*above[1:], folder]
        return GitIgnore() if any(found.ignores(path, is_folder=True) for path in inside) else found

    @staticmethod
    def _excludes_of(root: str) -> GitIgnore:
        return GitIgnore()._with(root, os.path.join(root, ".git", "info", "exclude"))

    def below(self, folder: str) -> GitIgnore:
        """Return these patterns and those of the folder's own .gitignore."""
        return self._with(folder, os.path.join(folder, ".gitignore"))

    def _with(self, folder: str, path: str) -> GitIgnore:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                lines = [line.rstrip("\r\n") for line in file]
        except OSError:
            return self
        patterns = [line for line in lines if line.strip() and not line.startswith("#")]
        if not patterns:
            return self
        return GitIgnore((*self.layers, (folder, _spec(patterns))))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Return whether an absolute path, in folders that are not ignored, is ignored."""
        for folder, spec in reversed(self.layers):
            if not path.startswith(folder.rstrip(os.sep) + os.sep):
                continue
            relative = path[len(folder) :].lstrip(os.sep).replace(os.sep, "/")
            verdict = spec.check_file(relative + "/" if is_folder else relative).include
            if verdict is not None:
                return verdict
        return False


def _spec(patterns: list[str]) -> pathspec.GitIgnoreSpec:
    """Return the compiled patterns; one that git would not understand either is left out."""
    try:
        return git_ignore_spec(patterns)
    except ValueError:
        return git_ignore_spec(pattern for pattern in patterns if _is_valid(pattern))


def _is_valid(pattern: str) -> bool:
    try:
        git_ignore_spec([pattern])
    except ValueError:
        return False
    return True


def _folders_above(folder: str) -> list[str]:
    """Return the folders from the root of the repository to the parent of this one; none outside of a repository."""
    above: list[str] = []
    here = folder
    while not os.path.exists(os.path.join(here, ".git")):
        parent = os.path.dirname(here)
        if parent == here:
            return []
        here = parent
        above.insert(0, here)
    return above
