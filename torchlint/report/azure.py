"""Logging commands that Azure Pipelines shows as issues."""

from __future__ import annotations

from torchlint.diagnostic import Diagnostic, Severity
from torchlint.report.data import Report


def render(report: Report) -> str:
    """Return one logging command per finding."""
    return "".join(_command(report, diagnostic) for _, diagnostic in report.in_files())


def _command(report: Report, diagnostic: Diagnostic) -> str:
    kind = "error" if diagnostic.severity is Severity.ERROR else "warning"
    properties = {
        "type": kind,
        "sourcepath": report.shown(diagnostic.path),
        "linenumber": str(diagnostic.start.row),
        "columnnumber": str(diagnostic.start.column),
        "code": diagnostic.code,
    }
    shown = "".join(f"{key}={_escaped(value, in_property=True)};" for key, value in properties.items())
    return f"##vso[task.logissue {shown}]{_escaped(diagnostic.message)}\n"


def _escaped(text: str, *, in_property: bool = False) -> str:
    text = text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(";", "%3B").replace("]", "%5D") if in_property else text
