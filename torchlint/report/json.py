"""The shape of Ruff's JSON: what reads Ruff reads this."""

from __future__ import annotations

import json
from typing import Any

from torchlint.diagnostic import Diagnostic, Position, TextEdit
from torchlint.engine.result import FileResult
from torchlint.report.data import Report


def render(report: Report) -> str:
    """Return a list with one object per finding."""
    entries = [entry(report, result, diagnostic) for result, diagnostic in report.diagnostics()]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def entry(report: Report, result: FileResult, diagnostic: Diagnostic) -> dict[str, Any]:
    """Return one finding as JSON data."""
    cell = result.cell(diagnostic.start)
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "filename": report.absolute(diagnostic.path),
        "location": location(result.placed(diagnostic.start)),
        "end_location": location(result.placed(diagnostic.end)),
        "noqa_row": result.placed(Position(diagnostic.noqa_row, 1)).row,
        "fix": fix(result, diagnostic),
        "url": None,
        "cell": cell.number if cell else None,
    }


def location(position: Position) -> dict[str, int]:
    """Return row and column, both 1-based."""
    return {"row": position.row, "column": position.column}


def fix(result: FileResult, diagnostic: Diagnostic) -> dict[str, Any] | None:
    """Return the fix with its edits by place, None without one."""
    if diagnostic.fix is None:
        return None
    return {
        "applicability": diagnostic.fix.safety.value,
        "message": diagnostic.fix.message,
        "why": diagnostic.fix.why or None,
        "edits": [_edit(result, edit) for edit in diagnostic.fix.edits],
    }


def _edit(result: FileResult, edit: TextEdit) -> dict[str, Any]:
    start, end = (result.excerpts.positions[offset] for offset in (edit.range.start, edit.range.end))
    cell = result.cell(start)
    return {
        "content": edit.content,
        "location": location(result.placed(start)),
        "end_location": location(result.placed(end)),
        **({"cell": cell.number} if cell else {}),
    }
