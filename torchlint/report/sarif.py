"""SARIF 2.1.0, with the fixes and the help of each rule."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from torchlint.diagnostic import Diagnostic, Position, Severity
from torchlint.engine.result import FileResult, Problem
from torchlint.report.data import Report, RuleInfo
from torchlint.safety import Safety

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report) -> str:
    """Return the run as a SARIF log; offsets of columns count Unicode code points."""
    codes = sorted({diagnostic.code for _, diagnostic in report.diagnostics()} | set(report.rules))
    driver: dict[str, Any] = {
        "name": "torchlint",
        "semanticVersion": report.version,
        "rules": [_rule(report, code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [_notification(report, problem) for problem in report.problems],
            }
        ],
        "results": [
            _result(report, result, diagnostic, codes.index(diagnostic.code))
            for result, diagnostic in report.diagnostics()
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(report: Report, code: str) -> dict[str, Any]:
    info = report.rules.get(code, RuleInfo(code, code, "", ""))
    rule: dict[str, Any] = {"id": code, "name": info.name}
    if info.summary:
        rule["shortDescription"] = {"text": info.summary}
    if info.documentation:
        rule["help"] = {"text": info.documentation, "markdown": info.documentation}
    return rule


def _notification(report: Report, problem: Problem) -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": {"uri": report.uri(problem.path)}}}
    return {"level": "error", "message": {"text": problem.message}, "locations": [location]}


def _result(report: Report, result: FileResult, diagnostic: Diagnostic, index: int) -> dict[str, Any]:
    artifact = {"uri": report.uri(diagnostic.path)}
    region = _region(diagnostic.start, diagnostic.end)
    entry: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"torchlint/v1": _fingerprint(report, result, diagnostic)},
    }
    if diagnostic.fix is not None and diagnostic.fix.safety is not Safety.DISPLAY:
        positions = result.excerpts.positions
        replacements = [
            {
                "deletedRegion": _region(positions[edit.range.start], positions[edit.range.end]),
                "insertedContent": {"text": edit.content},
            }
            for edit in diagnostic.fix.edits
        ]
        change = {"artifactLocation": artifact, "replacements": replacements}
        words = diagnostic.fix.message + (
            f" ({diagnostic.fix.safety.value}: {diagnostic.fix.why})" if diagnostic.fix.why else ""
        )
        entry["fixes"] = [{"description": {"text": words}, "artifactChanges": [change]}]
    return entry


def _region(start: Position, end: Position) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _fingerprint(report: Report, result: FileResult, diagnostic: Diagnostic) -> str:
    """Return a digest that survives lines moving: of path, code and the text of the line."""
    line = result.excerpts.lines.get(diagnostic.start.row, "").strip()
    words = "\0".join((report.posix(diagnostic.path), diagnostic.code, line))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]
