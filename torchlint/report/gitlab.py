"""GitLab's Code Quality report."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from torchlint.diagnostic import Position, Severity
from torchlint.report.data import Report

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report) -> str:
    """Return a list of issues, each with a fingerprint of its own that survives lines moving."""
    entries: list[dict[str, Any]] = []
    seen: set[str] = set()
    for result, diagnostic in report.diagnostics():
        path = report.posix(diagnostic.path)
        line = result.excerpts.lines.get(diagnostic.start.row, "").strip()
        fingerprint = _unique(f"{path}\0{diagnostic.code}\0{line}", seen)
        entries.append(
            {
                "type": "issue",
                "check_name": diagnostic.code,
                "description": f"{diagnostic.code} {diagnostic.name}: {diagnostic.message}",
                "categories": ["Performance"],
                "severity": _SEVERITIES[diagnostic.severity],
                "fingerprint": fingerprint,
                "location": {
                    "path": path,
                    "positions": {"begin": _place(diagnostic.start), "end": _place(diagnostic.end)},
                },
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def _place(position: Position) -> dict[str, int]:
    return {"line": position.row, "column": position.column}


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
