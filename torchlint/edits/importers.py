"""Names that a module passes on: other files of the project take from it what it has imported itself."""

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
    """Return those of a module's names that files beside, above or right below it take from it.

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
    for other in _around(own):
        text = _text(other)
        if own.stem not in text:
            continue
        words = {word for given in taking.findall(text) for word in re.findall(r"\w+|\*", given)}
        if "*" in words:
            return frozenset(names)
        found |= {name for name in names if name in words or re.search(rf"\b{stem}\.{re.escape(name)}\b", text)}
    return frozenset(found)


def _around(own: Path) -> Iterator[Path]:
    """Yield the files that may import a module without a long way to it: those of a project's other parts seldom do."""
    here = own.resolve().parent
    folders = [here, *(each for each in _listed(here) if each.is_dir() and not each.name.startswith("."))]
    above = here
    for _ in range(_MOST_LEVELS):
        if any((above / top).exists() for top in _TOPS) or above.parent == above:
            break
        above = above.parent
        folders.append(above)
    files = (each for folder in folders for each in _listed(folder) if each.suffix == ".py")
    yield from [each for each in files if each.name != own.name or each.parent != here][:_MOST_FILES]


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
