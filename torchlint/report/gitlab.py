"""GitLab's Code Quality report."""

from __future__ import annotations

import json
from typing import Any

from torchlint.diagnostic import Position, Severity
from torchlint.report.data import Report
from torchlint.report.fingerprint import fingerprinted

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report) -> str:
    """Return a list of issues, each with a fingerprint of its own that survives lines moving."""
    entries: list[dict[str, Any]] = []
    for _, diagnostic, fingerprint in fingerprinted(report):
        entries.append(
            {
                "type": "issue",
                "check_name": diagnostic.code,
                "description": f"{diagnostic.code} {diagnostic.name}: {diagnostic.message}",
                "categories": ["Performance"],
                "severity": _SEVERITIES[diagnostic.severity],
                "fingerprint": fingerprint,
                "location": {
                    "path": report.posix(diagnostic.path),
                    "positions": {"begin": _place(diagnostic.start), "end": _place(diagnostic.end)},
                },
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def _place(position: Position) -> dict[str, int]:
    return {"line": position.row, "column": position.column}
