"""Reviewdog's diagnostic format; its columns count UTF-8 bytes."""

from __future__ import annotations

import json
from typing import Any

from torchlint.diagnostic import Diagnostic, Position, Severity
from torchlint.engine.result import FileResult
from torchlint.report.data import Report
from torchlint.safety import Safety

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(report: Report) -> str:
    """Return one object with all findings and problems; single edits become suggestions."""
    findings = [_diagnostic(report, result, diagnostic) for result, diagnostic in report.in_files()]
    problems = [
        {"message": problem.message, "severity": "ERROR", "location": {"path": report.posix(problem.path)}}
        for problem in report.problems
    ]
    data = {"source": {"name": "torchlint"}, "diagnostics": [*findings, *problems]}
    return json.dumps(data, indent=2) + "\n"


def _diagnostic(report: Report, result: FileResult, diagnostic: Diagnostic) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "message": diagnostic.message,
        "severity": _SEVERITIES[diagnostic.severity],
        "code": {"value": diagnostic.code},
        "location": {
            "path": report.posix(diagnostic.path),
            "range": _range(result, diagnostic.start, diagnostic.end),
        },
    }
    fix = diagnostic.fix
    if fix is not None and fix.safety is not Safety.DISPLAY and len(fix.edits) == 1:
        edit = fix.edits[0]
        start, end = (result.excerpts.positions[offset] for offset in (edit.range.start, edit.range.end))
        entry["suggestions"] = [{"range": _range(result, start, end), "text": edit.content}]
    return entry


def _range(result: FileResult, start: Position, end: Position) -> dict[str, Any]:
    return {"start": _place(result, start), "end": _place(result, end)}


def _place(result: FileResult, position: Position) -> dict[str, int]:
    before = result.excerpts.lines.get(position.row, "")[: position.column - 1]
    column = len(before.encode("utf-8", "surrogatepass")) + 1 if before else position.column
    return {"line": position.row, "column": column}
