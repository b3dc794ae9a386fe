"""Workflow commands that GitHub Actions shows as annotations."""

from __future__ import annotations

from torchlint.diagnostic import Diagnostic, Severity
from torchlint.engine.result import Problem
from torchlint.report.data import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report) -> str:
    """Return one workflow command per finding, and one per problem that kept a file from being checked."""
    findings = "".join(command(report, diagnostic) for _, diagnostic in report.in_files())
    return findings + "".join(_problem(report, problem) for problem in report.problems)


def _problem(report: Report, problem: Problem) -> str:
    path = report.posix(problem.path)
    return f"::error file={escaped(path, in_property=True)},title=torchlint::{escaped(f'{path}: {problem.message}')}\n"


def command(report: Report, diagnostic: Diagnostic) -> str:
    """Return the workflow command of one finding; columns only where it lies on one row, as GitHub demands."""
    properties = {"file": report.posix(diagnostic.path), "line": str(diagnostic.start.row)}
    if diagnostic.start.row == diagnostic.end.row:
        properties |= {"col": str(diagnostic.start.column), "endColumn": str(diagnostic.end.column)}
    properties |= {"endLine": str(diagnostic.end.row), "title": f"torchlint {diagnostic.code} {diagnostic.name}"}
    shown = ",".join(f"{key}={escaped(value, in_property=True)}" for key, value in properties.items())
    place = f"{report.posix(diagnostic.path)}:{diagnostic.start.row}:{diagnostic.start.column}"
    message = escaped(f"{place}: {diagnostic.code} {diagnostic.message}")
    return f"::{_COMMANDS[diagnostic.severity]} {shown}::{message}\n"


def escaped(text: str, *, in_property: bool = False) -> str:
    """Return the text as workflow commands want it: percent-encoded where it would end the command or a property."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text
