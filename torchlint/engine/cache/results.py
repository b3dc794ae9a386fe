"""The results of files by what the files were: the same stamp, or else the same bytes, means the same result."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from torchlint.engine.cache.codec import ForeignResultError, decode, encode
from torchlint.engine.cache.folder import CacheFolder
from torchlint.engine.cache.identity import plan_name
from torchlint.engine.result import FileResult, Status
from torchlint.source import SourceError, file_digest
from torchlint.suppress import BUILT_IN

if TYPE_CHECKING:
    from torchlint.engine.plan import Plan, Task
    from torchlint.rule import RuleWords

Outcome = TypeVar("Outcome")

_KIND = "results"
_MOST_ENTRIES = 100_000
_GRANULE = 2_000_000_000
"""Nanoseconds within which a file may change twice and have the same time: those of FAT, the coarsest in use."""


class ResultCache:
    """The results of former runs, and those of this run for later ones.

    An entry is a list of the name of the plan, the digest of the file, its stamp (or nothing, where the file was so
    young that it may have changed again within the granule of its time) and the result without its path, as a text: so
    a result takes little memory until it is asked for.
    """

    def __init__(self, folder: CacheFolder, name: str, plans: Iterable[Plan], words: Sequence[RuleWords]) -> None:
        """Read what there is under this name; ``words`` are those of all rules."""
        self._folder = folder
        self._name = name
        self._plans = [plan_name(plan) for plan in plans]
        self._known = {**BUILT_IN, **{rule.code: rule.name for rule in words}}
        self._base = os.path.dirname(os.path.abspath(folder.path))
        self._here = os.getcwd()
        self._young = time.time_ns() - _GRANULE
        self._read_at = folder.stamp(_KIND, name)
        self._entries = self._read()
        self._changes: dict[str, list[str]] = {}

    def _read(self) -> dict[str, Any]:
        entries = self._folder.read(_KIND, self._name)
        return entries if isinstance(entries, dict) else {}

    def find(self, task: Task) -> FileResult | None:
        """Return the result of a file whose stamp or content is that of a former run."""
        key = self._key(task)
        entry = self._entry(key)
        if entry is None or entry[0] != self._plans[task.plan]:
            return None
        stamp = self._stamp(task)
        if entry[2] != stamp or not stamp:
            try:
                if file_digest(task.path) != entry[1]:
                    return None
            except SourceError:
                return None
            if stamp:
                self._changes[key] = [entry[0], entry[1], stamp, entry[3]]
        try:
            return decode(json.loads(entry[3]), task.path, self._known)
        except (ValueError, RecursionError):  # also ForeignResultError
            self._changes.pop(key, None)
            return None

    def find_clean(self, task: Task) -> FileResult | None:
        """Return the result of a file in which nothing was found, so that nothing is to be changed in it."""
        result = self.find(task)
        return None if result is None or result.diagnostics else result

    def add(self, task: Task, result: FileResult) -> None:
        """Take the result of a file; errors are never kept, nor what would not come back as it is."""
        key = self._key(task)
        if result.errors or result.status is Status.FAILED or not result.digest:
            if key in self._entries:
                self._changes[key] = []
            return
        data = encode(result)
        try:
            again = decode(data, task.path, self._known)
        except ForeignResultError:
            return
        if _words(again) == _words(result):
            text = json.dumps(data, separators=(",", ":"), check_circular=False)
            self._changes[key] = [self._plans[task.plan], result.digest, self._stamp(task), text]

    def save(self) -> None:
        """Write what is new, together with what other runs wrote meanwhile; a failure means a slower next run."""
        if not self._changes:
            return
        if self._folder.stamp(_KIND, self._name) != self._read_at:
            self._entries = self._read()
        others = (key for key in self._entries if key not in self._changes and self._is_there(key))
        entries = {key: self._entries[key] for key in others}
        entries.update({key: entry for key, entry in self._changes.items() if entry})
        self._folder.write(_KIND, self._name, dict(list(entries.items())[-_MOST_ENTRIES:]))

    def _key(self, task: Task) -> str:
        """Return the path relative to the folder that the cache is in, so that both can move together."""
        path = task.path if os.path.isabs(task.path) else os.path.normpath(os.path.join(self._here, task.path))
        below = self._base.rstrip(os.sep) + os.sep
        return path.removeprefix(below)

    def _is_there(self, key: str) -> bool:
        return os.path.lexists(os.path.join(self._base, key))

    def _stamp(self, task: Task) -> str:
        """Return the stamp of the file as it was found, nothing if it could change without changing its stamp."""
        if not task.stamp or max(task.stamp[1:3]) >= self._young:
            return ""
        return "-".join(map(str, task.stamp))

    def _entry(self, key: str) -> list[str] | None:
        entry = self._entries.get(key)
        is_one = type(entry) is list and len(entry) == 4 and all(type(part) is str for part in entry)
        return entry if is_one else None


def check_with(
    cache: ResultCache, tasks: Iterable[Task], check: Callable[[list[Task]], list[FileResult]]
) -> list[FileResult]:
    """Return the result of each task, in their order, where only what the cache does not have is checked."""

    def check_and_keep(missing: list[Task]) -> list[FileResult]:
        checked = check(missing)
        for task, result in zip(missing, checked, strict=True):
            cache.add(task, result)
        return checked

    results = completed(tasks, cache.find, lambda result: result, check_and_keep)
    cache.save()
    return results


def completed(
    tasks: Iterable[Task],
    find: Callable[[Task], FileResult | None],
    convert: Callable[[FileResult], Outcome],
    make: Callable[[list[Task]], list[Outcome]],
) -> list[Outcome]:
    """Return the outcome of each task, in their order: converted from what is found, or else made all together."""
    ordered = list(tasks)
    found = [find(task) for task in ordered]
    missing = [task for task, result in zip(ordered, found, strict=True) if result is None]
    made = iter(make(missing) if missing else [])
    return [next(made) if result is None else convert(result) for result in found]


def _words(result: FileResult) -> tuple[Any, ...]:
    """Return all that reports say about a file, and in which order."""
    excerpts = result.excerpts
    return replace(result, digest="", timings={}), list(excerpts.lines), list(excerpts.positions)
