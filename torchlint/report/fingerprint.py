"""Names for findings by which services know them again after lines have moved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult
from torchlint.report.data import Report


def fingerprinted(report: Report) -> Iterator[tuple[FileResult, Diagnostic, str]]:
    """Yield every finding at the rows of its file with a digest of path, code and the text of its line.

    Equal ones are counted through.
    """
    seen: set[str] = set()
    for result, diagnostic in report.diagnostics():
        line = result.excerpts.lines.get(diagnostic.start.row, "").strip()
        words = "\0".join((report.posix(diagnostic.path), diagnostic.code, line))
        yield result, result.in_file(diagnostic), _unique(words, seen)


def _unique(words: str, seen: set[str]) -> str:
    """Return the digest of the words, of the words and a counter where they come again."""
    copy = 0
    while True:
        salted = f"{words}\0{copy}" if copy else words
        digest = hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if digest not in seen:
            seen.add(digest)
            return digest
        copy += 1
