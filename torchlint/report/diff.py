"""Unified diffs that `patch` and `git apply` take."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchlint.report.styled import Line

_NO_NEWLINE = "\\ No newline at end of file"
_STYLES = {"+": "added", "-": "removed", "@": "hunk"}


def diff_lines(before: str, after: str, path: str) -> Iterator[str]:
    """Yield the lines of the diff without their newlines (a carriage return stays)."""
    old, new = _lines(before), _lines(after)
    for line in difflib.unified_diff(old, new, path, path, lineterm="\n"):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_NEWLINE


def diff(before: str, after: str, path: str) -> str:
    """Return the diff as text."""
    return "".join(line + "\n" for line in diff_lines(before, after, path))


def styled_diff(before: str, after: str, path: str) -> Iterator[Line]:
    """Yield the diff as styled lines."""
    for line in diff_lines(before, after, path):
        heading = line.startswith(("--- ", "+++ "))
        yield [(line.rstrip("\r"), "header" if heading else _STYLES.get(line[:1], ""))]


def _lines(text: str) -> list[str]:
    """Return the lines with their newlines, split as diff programs split: at line feeds only."""
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.rpartition("\n")[2]] if text[-1:] not in ("", "\n") else []
    )
