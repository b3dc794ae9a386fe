"""The files around a module, and the names that they take from it: it passes on what it has imported itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from pathlib import Path

_TOPS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What stands where a project begins."""

_MOST_LEVELS = 3
_MOST_FILES = 300
_LARGEST = 1_000_000


def taken_by_others(path: str, names: Set[str]) -> frozenset[str]:
    """Return those of a module's names that files in the folders around its own take from it.

    ``from common import *``, ``from .common import Variable``, ``common.np``. A path of no file has none.
    """
    own = Path(path)
    if not names or own.suffix != ".py" or not own.is_file():
        return frozenset()
    stem = re.escape(own.stem)
    taking = re.compile(
        rf"^[ \t]*from\s+[\w.]*\b{stem}\s+import\s+(\([^)]*\)|[^\n\\]*(?:\\\r?\n[^\n\\]*)*)", re.MULTILINE
    )
    found: set[str] = set()
    for other in files_around(own):
        text = _text(other)
        if own.stem not in text:
            continue
        words = {word for given in taking.findall(text) for word in re.findall(r"\w+|\*", given)}
        if "*" in words:
            return frozenset(names)
        aliases = {own.stem, *re.findall(rf"\b{stem}\s+as\s+(\w+)", text)}
        uses = re.compile(rf"\b(?:{'|'.join(map(re.escape, aliases))})\.(\w+)")
        found |= names & (words | set(uses.findall(text)))
    return frozenset(found)


def files_around(own: Path) -> Iterator[Path]:
    """Yield the files in the folders around that of a module, up to the top of its project."""
    here = own.resolve().parent
    top = _top(here)
    folders = [here, *_folders(here)]
    above = [each for each in here.parents if top is not None and (each == top or top in each.parents)]
    for each in above if top is not None else here.parents[:1]:
        others = _folders(each) if top is not None else []  # without a project, what lies beside is something else
        folders += [other for other in (each, *others) if other not in folders]
    files = (each for folder in folders for each in _listed(folder) if each.suffix == ".py")
    yield from [each for each in files if each.name != own.name or each.parent != here][:_MOST_FILES]


def top_of_project(own: Path) -> Path | None:
    """Return the folder in which the project of a module begins, None if that cannot be seen."""
    return _top(own.resolve().parent)


def _top(here: Path) -> Path | None:
    above = [here, *here.parents[:_MOST_LEVELS]]
    return next((each for each in above if any((each / name).exists() for name in _TOPS)), None)


def _folders(folder: Path) -> list[Path]:
    return [each for each in _listed(folder) if each.is_dir() and not each.name.startswith(".")]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    """The text of a file as far as imports are concerned, empty if it cannot be read."""
    try:
        return path.read_bytes()[:_LARGEST].decode("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""
