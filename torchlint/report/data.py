"""What every report is made from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult, Problem, Status
from torchlint.rule import Described
from torchlint.safety import Safety


class RuleInfo(NamedTuple):
    """The words of a rule of which no more is known, as that of a finding from elsewhere."""

    code: str
    name: str
    summary: str = ""
    documentation: str = ""


@dataclass(frozen=True)
class Report:
    """The results of one run, files in order of their paths."""

    results: tuple[FileResult, ...]
    version: str
    root: str
    """The folder that relative paths are relative to: where the command was run."""

    rules: Mapping[str, Described] = field(default_factory=dict)
    targets: Mapping[str, int] = field(default_factory=dict)
    """Target and its origin, in words, to the number of files that have it."""

    command: str = ""
    """The paths and options of this run, quoted for a shell, to be repeated in hints."""

    def limited(self, most: int) -> tuple[Report, int]:
        """Return the report with the first findings only, and how many are left out."""
        room, results = most, []
        for result in self.results:
            results.append(replace(result, diagnostics=result.diagnostics[:room]))
            room -= len(results[-1].diagnostics)
        return replace(self, results=tuple(results)), max(0, sum(self.by_code.values()) - most)

    def diagnostics(self) -> Iterator[tuple[FileResult, Diagnostic]]:
        """Yield every finding with the result of its file."""
        for result in self.results:
            for diagnostic in result.diagnostics:
                yield result, diagnostic

    def in_files(self) -> Iterator[tuple[FileResult, Diagnostic]]:
        """Yield every finding at the rows of its file, which are those of the JSON in a notebook."""
        for result, diagnostic in self.diagnostics():
            yield result, result.in_file(diagnostic)

    @cached_property
    def by_code(self) -> Counter[tuple[str, str]]:
        """Findings counted by code and name."""
        return Counter((diagnostic.code, diagnostic.name) for _, diagnostic in self.diagnostics())

    @cached_property
    def by_safety(self) -> Counter[Safety | None]:
        """Findings counted by the safety of their fix, None: no fix."""
        return Counter(diagnostic.fix.safety if diagnostic.fix else None for _, diagnostic in self.diagnostics())

    @cached_property
    def by_status(self) -> Counter[Status]:
        """Files counted by how far they came."""
        return Counter(result.status for result in self.results)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that kept files from being checked as they should."""
        return tuple(problem for result in self.results for problem in result.errors)

    def shown(self, path: str) -> str:
        """Return the path as people read it: relative where it lies below the root."""
        if not os.path.isabs(path):
            return os.path.normpath(path) if path != "-" else path
        return path_below(self.root, path) or path

    def absolute(self, path: str) -> str:
        """Return the absolute path."""
        return path if path.startswith("<") else os.path.normpath(os.path.join(self.root, path))

    def posix(self, path: str) -> str:
        """Return the path for services: relative to the root where possible, with forward slashes."""
        return PurePath(self.shown(path)).as_posix()

    def uri(self, path: str) -> str:
        """Return the path as a URI: relative where it lies below the root, else absolute; percent-encoded."""
        from urllib.parse import quote

        if path == "-":
            return path
        below = path_below(self.root, self.absolute(path))
        if below is None:
            return Path(self.absolute(path)).as_uri()
        return quote(PurePath(below).as_posix(), errors="surrogateescape")


def path_below(folder: str, path: str) -> str | None:
    """Return an absolute path relative to a folder, None where it leads out of the folder."""
    try:
        relative = os.path.relpath(path, folder)
    except ValueError:  # on another drive
        return None
    return None if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative


def plural(count: int, one: str, many: str = "") -> str:
    """Return the count with its noun: ``1 file``, ``2 files``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
