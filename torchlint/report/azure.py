"""Logging commands that Azure Pipelines shows as issues."""

from __future__ import annotations

from collections.abc import Mapping

from torchlint.diagnostic import Diagnostic, Severity
from torchlint.report.data import Report


def render(report: Report) -> str:
    """Return one logging command per finding, and one per problem that kept a file from being checked."""
    findings = "".join(_finding(report, diagnostic) for _, diagnostic in report.in_files())
    return findings + "".join(
        _command({"type": "error", "sourcepath": report.shown(problem.path)}, problem.message)
        for problem in report.problems
    )


def _finding(report: Report, diagnostic: Diagnostic) -> str:
    properties = {
        "type": "error" if diagnostic.severity is Severity.ERROR else "warning",
        "sourcepath": report.shown(diagnostic.path),
        "linenumber": str(diagnostic.start.row),
        "columnnumber": str(diagnostic.start.column),
        "code": diagnostic.code,
    }
    return _command(properties, diagnostic.message)


def _command(properties: Mapping[str, str], message: str) -> str:
    shown = "".join(f"{key}={_escaped(value, in_property=True)};" for key, value in properties.items())
    return f"##vso[task.logissue {shown}]{_escaped(message)}\n"


def _escaped(text: str, *, in_property: bool = False) -> str:
    text = text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(";", "%3B").replace("]", "%5D") if in_property else text
