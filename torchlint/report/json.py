"""The shape of Ruff's JSON: what reads Ruff reads this."""

from __future__ import annotations

import json
from typing import Any

from torchlint.diagnostic import Diagnostic, Position
from torchlint.engine.result import FileResult
from torchlint.report.data import Report


def render(report: Report) -> str:
    """Return a list with one object per finding."""
    entries = [entry(report, result, diagnostic) for result, diagnostic in report.diagnostics()]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def entry(report: Report, result: FileResult, diagnostic: Diagnostic) -> dict[str, Any]:
    """Return one finding as JSON data."""
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "filename": report.absolute(diagnostic.path),
        "location": location(diagnostic.start),
        "end_location": location(diagnostic.end),
        "noqa_row": diagnostic.noqa_row,
        "fix": fix(result, diagnostic),
        "url": None,
        "cell": None,
    }


def location(position: Position) -> dict[str, int]:
    """Return row and column, both 1-based."""
    return {"row": position.row, "column": position.column}


def fix(result: FileResult, diagnostic: Diagnostic) -> dict[str, Any] | None:
    """Return the fix with its edits by place, None without one."""
    if diagnostic.fix is None:
        return None
    positions = result.excerpts.positions
    return {
        "applicability": diagnostic.fix.safety.value,
        "message": diagnostic.fix.message,
        "why": diagnostic.fix.why or None,
        "edits": [
            {
                "content": edit.content,
                "location": location(positions[edit.range.start]),
                "end_location": location(positions[edit.range.end]),
            }
            for edit in diagnostic.fix.edits
        ],
    }
