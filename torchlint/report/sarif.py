"""SARIF 2.1.0, with the fixes and the help of each rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchlint.diagnostic import Diagnostic, Position, Severity
from torchlint.engine.result import FileResult, Problem
from torchlint.report.data import Report, RuleInfo, path_below
from torchlint.report.fingerprint import fingerprinted
from torchlint.rule import Described
from torchlint.safety import Safety

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report) -> str:
    """Return the run as a SARIF log; offsets of columns count Unicode code points."""
    names = {diagnostic.code: diagnostic.name for _, diagnostic in report.diagnostics()}
    codes = sorted(names | dict.fromkeys(report.rules))
    indices = {code: index for index, code in enumerate(codes)}
    driver: dict[str, Any] = {
        "name": "torchlint",
        "semanticVersion": report.version,
        "rules": [_rule(report.rules.get(code) or RuleInfo(code, names[code])) for code in codes],
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
            _result(report, result, diagnostic, indices[diagnostic.code], fingerprint)
            for result, diagnostic, fingerprint in fingerprinted(report)
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def strays(report: Report) -> list[str]:
    """Return the files with results that lie outside the repository: no service can show these results."""
    with_results = [result for result in report.results if result.diagnostics or result.errors]
    repository = _repository(report.root)
    absolute = (report.absolute(result.path) for result in with_results if result.path != "-")
    return [path for path in absolute if path_below(repository, path) is None]


def _repository(folder: str) -> str:
    """Return the nearest folder around that holds ``.git``, the folder itself without one."""
    path = Path(folder)
    return str(next((parent for parent in (path, *path.parents) if (parent / ".git").exists()), path))


def _rule(info: Described) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": info.code, "name": info.name}
    if info.summary:
        rule["shortDescription"] = {"text": info.summary}
    if info.documentation:
        rule["help"] = {"text": info.documentation, "markdown": info.documentation}
    return rule


def _notification(report: Report, problem: Problem) -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": {"uri": report.uri(problem.path)}}}
    return {"level": "error", "message": {"text": problem.message}, "locations": [location]}


def _result(report: Report, result: FileResult, diagnostic: Diagnostic, index: int, fingerprint: str) -> dict[str, Any]:
    artifact = {"uri": report.uri(diagnostic.path)}
    region = _region(diagnostic.start, diagnostic.end)
    entry: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"torchlint/v1": fingerprint},
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
