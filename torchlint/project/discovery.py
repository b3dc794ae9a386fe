"""Which files there are below the given paths; excludes and .gitignore prune early, and no error ends the walk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from torchlint.project.gitignore import GitIgnore
from torchlint.project.patterns import Patterns
from torchlint.settings import Settings

_SOURCES = (".py", ".pyi", ".ipynb")
_TEST_FOLDERS = frozenset(("tests", "testing_utils"))


class FindsSettings(Protocol):
    """What answers which settings hold in a folder."""

    def for_folder(self, folder: str) -> Settings:
        """Return the settings of the files in the folder."""


class FoundFile(NamedTuple):
    """One file to check."""

    path: str
    """As it was given, or joined to the given folder; its name may hold surrogate escapes."""

    size: int
    """In bytes; 0 if not even that can be known."""

    settings: Settings
    stamp: tuple[int, ...] = ()
    """Size, times of change and number of the file: what differs once its content does."""

    given: bool = False
    """Whether the path itself was asked for, not found below a folder."""

    @property
    def is_stub(self) -> bool:
        """Whether only the rules of the 800s apply: a stub holds no running code."""
        return self.path.endswith(".pyi")

    @property
    def is_test(self) -> bool:
        """Whether the performance rules are off unless the settings have ``lint_tests``."""
        return is_test_file(_relative(self.path, self.settings.root))


class Unreachable(NamedTuple):
    """A path that cannot be looked into, and why in a few words."""

    path: str
    reason: str


class Discovery(NamedTuple):
    """What lies below the given paths, each file once, in the order of the paths."""

    files: tuple[FoundFile, ...]
    unreachable: tuple[Unreachable, ...]
    excluded: tuple[str, ...] = ()
    """Given paths that ``force-exclude`` leaves out."""


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return size, time of modification, time of change and number of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_test_file(path: str) -> bool:
    """Return whether the path, relative to the project, is that of test code."""
    *folders, name = path.replace(os.altsep or os.sep, os.sep).split(os.sep)
    stem = os.path.splitext(name)[0]
    is_named = not _TEST_FOLDERS.isdisjoint(folders) or name == "conftest.py"
    return is_named or stem.startswith("test_") or stem.endswith("_test")


def _relative(path: str, root: str) -> str:
    absolute = os.path.abspath(path)
    return absolute[len(root) :].lstrip(os.sep) if root and absolute.startswith(root.rstrip(os.sep) + os.sep) else path


def discover(paths: Sequence[str], finder: FindsSettings) -> Discovery:
    """Return the files below the paths.

    A file that is given itself is always included, whatever its name, unless ``force-exclude`` is set. Links to
    folders are not followed, so that no loop is possible; a link to a file counts only if the file is not found itself.

    Raises:
        SettingsError: a configuration in effect is wrong.
    """
    walk = _Walk(finder)
    for path in paths:
        walk.start(path)
    return walk.result()


class _Folder(NamedTuple):
    path: str
    """Empty for the current folder."""

    absolute: str
    """Without links, so that each folder has one such path."""

    settings: Settings
    excluded: Patterns
    ignored: GitIgnore


class _Walk:
    def __init__(self, finder: FindsSettings) -> None:
        self._finder = finder
        self._files: dict[str, FoundFile] = {}
        self._links: dict[str, FoundFile] = {}
        self._unreachable: dict[str, Unreachable] = {}
        self._excluded: list[str] = []
        self._patterns: dict[Settings, Patterns] = {}

    def result(self) -> Discovery:
        files = {**self._links, **self._files}.values()
        return Discovery(
            tuple(sorted(files, key=lambda file: file.path)),
            tuple(self._unreachable[path] for path in sorted(self._unreachable)),
            tuple(self._excluded),
        )

    def start(self, path: str) -> None:
        """Add what a given path stands for."""
        path = os.path.normpath(path)
        is_folder = os.path.isdir(path)
        settings = self._finder.for_folder(path if is_folder else os.path.dirname(path) or ".")
        absolute = os.path.abspath(path)
        if settings.force_exclude and self._is_excluded(absolute, settings, is_folder=is_folder):
            self._excluded.append(path)
        elif is_folder:
            self._descend(path, settings)
        else:
            self._add_given(path, settings)

    def _is_excluded(self, absolute: str, settings: Settings, *, is_folder: bool) -> bool:
        return self._patterns_of(settings).match(absolute, is_folder=is_folder)

    def _patterns_of(self, settings: Settings) -> Patterns:
        if settings not in self._patterns:
            self._patterns[settings] = Patterns((*settings.exclude, *settings.extend_exclude), settings.root or ".")
        return self._patterns[settings]

    def _add_given(self, path: str, settings: Settings) -> None:
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            self._fail(path, error)
        else:
            found = FoundFile(path, status.st_size, settings, stamp(status), given=True)
            self._files.setdefault(os.path.realpath(path), found)

    def _fail(self, path: str, error: OSError | ValueError) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self._unreachable.setdefault(path, Unreachable(path, reason[:1].lower() + reason[1:]))

    def _descend(self, path: str, settings: Settings) -> None:
        absolute = os.path.realpath(path)
        ignored = GitIgnore.around(absolute) if settings.respect_gitignore else GitIgnore.nothing()
        first = _Folder("" if path == "." else path, absolute, settings, self._patterns_of(settings), ignored)
        waiting = [first]
        while waiting:
            waiting += self._look_into(waiting.pop())

    def _look_into(self, folder: _Folder) -> Iterator[_Folder]:
        """Add the files of a folder and yield the folders in it."""
        try:
            with os.scandir(folder.path or ".") as listing:
                entries = list(listing)
        except OSError as error:
            self._fail(folder.path or ".", error)
            return
        names = {entry.name for entry in entries}
        if ".gitignore" in names and folder.settings.respect_gitignore:
            folder = folder._replace(ignored=folder.ignored.below(folder.absolute))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not (is_folder or entry.name.endswith(_SOURCES)):
                continue
            absolute = os.path.join(folder.absolute, entry.name)
            if folder.excluded.match_entry(absolute, entry.name, is_folder=is_folder):
                continue
            if folder.ignored.ignores(absolute, is_folder=is_folder):
                continue
            path = os.path.join(folder.path, entry.name)
            if is_folder:
                yield self._enter(folder, path, absolute)
            else:
                self._add_found(entry, path, absolute, folder.settings)

    def _enter(self, folder: _Folder, path: str, absolute: str) -> _Folder:
        settings = self._finder.for_folder(path)
        excluded = folder.excluded if settings is folder.settings else self._patterns_of(settings)
        return _Folder(path, absolute, settings, excluded, folder.ignored)

    def _add_found(self, entry: os.DirEntry[str], path: str, absolute: str, settings: Settings) -> None:
        try:
            if not entry.is_file():
                return
            status = entry.stat()
            found = FoundFile(path, status.st_size, settings, stamp(status))
        except OSError as error:
            self._fail(path, error)
            return
        if entry.is_symlink():
            self._links.setdefault(os.path.realpath(absolute), found)
        else:
            self._files.setdefault(absolute, found)
