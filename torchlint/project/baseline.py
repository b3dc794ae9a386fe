"""A file of findings that are known and may wait: recognised by what they are, not by the row they stand on."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

from torchlint.atomic import replace_file
from torchlint.diagnostic import Diagnostic, essence

VERSION = 1
"""Of the format; a file of another one is refused."""

_MARK = "torchlint-baseline"


class BaselineError(Exception):
    """A baseline cannot be read or written; the message says in one line why and what to do."""


class Entry(NamedTuple):
    """What a finding is known by, within its file."""

    code: str
    scope: str
    statement: str

    def known_by(self) -> Entry:
        """Return what two entries have in common that mean the same finding."""
        return self._replace(statement=essence(self.statement))


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known findings of a project."""

    path: str
    """Of the file that holds them, absolute; the paths in it are relative to its folder."""

    files: Mapping[str, Mapping[Entry, int]] = field(default_factory=dict)
    """Path of a file as it stands in the baseline, to how often each entry is known."""

    def name(self, path: str) -> str:
        """Return how a path stands in the baseline: relative to its folder, with forward slashes."""
        absolute = os.path.abspath(path)
        try:
            return PurePath(os.path.relpath(absolute, os.path.dirname(self.path))).as_posix()
        except ValueError:  # another drive
            return PurePath(absolute).as_posix()

    def entries(self, path: str) -> Mapping[Entry, int]:
        """Return what is known of a file."""
        return self.files.get(self.name(path), {})

    def gone(self) -> tuple[str, ...]:
        """Return the files that are in the baseline and no longer in the project."""
        folder = os.path.dirname(self.path)
        return tuple(name for name in self.files if not os.path.exists(os.path.join(folder, name)))

    def total(self) -> int:
        """Return the number of known findings."""
        return sum(sum(entries.values()) for entries in self.files.values())


def entry(diagnostic: Diagnostic) -> Entry:
    """Return what a finding is known by."""
    return Entry(diagnostic.code, diagnostic.anchor.scope, diagnostic.anchor.statement)


def counted(diagnostics: Iterable[Diagnostic]) -> Counter[Entry]:
    """Return how often each entry occurs."""
    return Counter(entry(diagnostic) for diagnostic in diagnostics)


def missing(known: Mapping[Entry, int], found: Mapping[Entry, int]) -> int:
    """Return how many of the known findings are not among those found."""
    return (_pooled(known) - _pooled(found)).total()


def _pooled(entries: Mapping[Entry, int]) -> Counter[Entry]:
    pooled: Counter[Entry] = Counter()
    for each, count in entries.items():
        pooled[each.known_by()] += count
    return pooled


def matched(diagnostics: Iterable[Diagnostic], known: Mapping[Entry, int]) -> list[bool]:
    """Return for each finding whether it is known; of too many alike, the first ones are."""
    left = _pooled(known)
    answers = []
    for diagnostic in diagnostics:
        key = entry(diagnostic).known_by()
        answers.append(left[key] > 0)
        left[key] -= 1
    return answers


def read_baseline(path: str) -> Baseline:
    """Return the baseline in a file.

    Raises:
        BaselineError: there is none, it is damaged, or it is of another version.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        raise BaselineError(
            f"there is no baseline {path}; `torchlint check --write-baseline {path}` writes it"
        ) from None
    except OSError as error:
        raise BaselineError(f"cannot read the baseline {path}: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise BaselineError(
            f"the baseline {path} is damaged in line {error.lineno}: restore it, or delete it and write it anew"
        ) from error
    except (UnicodeError, RecursionError) as error:
        raise BaselineError(f"the baseline {path} is damaged: restore it, or delete it and write it anew") from error
    return Baseline(os.path.abspath(path), _files(path, document))


def _files(path: str, document: object) -> dict[str, dict[Entry, int]]:
    version = document.get(_MARK) if isinstance(document, dict) else None
    if version is None:
        raise BaselineError(f"{path} is not a baseline of torchlint: it has no {json.dumps(_MARK)}")
    if version != VERSION:
        raise BaselineError(
            f"the baseline {path} has format {version!r}, this torchlint knows {VERSION}: delete it and write it anew "
            "with --write-baseline"
        )
    try:
        return {str(name): _entries(items) for name, items in document["findings"].items()}  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"the baseline {path} is damaged: restore it, or delete it and write it anew") from error


def _entries(items: Iterable[Mapping[str, object]]) -> dict[Entry, int]:
    found: dict[Entry, int] = {}
    for item in items:
        words = [item["code"], item.get("scope", ""), item.get("statement", "")]
        count = item.get("count", 1)
        if not all(isinstance(word, str) for word in words) or not isinstance(count, int) or count < 1:
            raise ValueError("not an entry")
        found[Entry(*map(str, words))] = count
    return found


def rendered(baseline: Baseline) -> str:
    """Return the baseline as JSON: a line for each entry, in a stable order, so that it reads well in a diff."""
    files = []
    for name, entries in sorted(baseline.files.items()):
        lines = [f"      {_line(key, count)}" for key, count in sorted(entries.items())]
        if lines:
            files.append(f"    {json.dumps(name)}: [\n" + ",\n".join(lines) + "\n    ]")
    findings = "{\n" + ",\n".join(files) + "\n  }" if files else "{}"
    return f'{{\n  {json.dumps(_MARK)}: {VERSION},\n  "findings": {findings}\n}}\n'


def _line(key: Entry, count: int) -> str:
    return json.dumps({**key._asdict(), **({"count": count} if count > 1 else {})})


def write_baseline(baseline: Baseline) -> None:
    """Write the baseline to its file, all of it or nothing.

    Raises:
        BaselineError: it cannot be written.
    """
    real = os.path.realpath(baseline.path)
    try:
        like = os.stat(real) if os.path.exists(real) else None
        replace_file(real, rendered(baseline).encode(), like=like)
    except OSError as error:
        raise BaselineError(f"cannot write the baseline {baseline.path}: {error.strerror or error}") from error
