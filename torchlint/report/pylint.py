"""Pylint's parseable format."""

from __future__ import annotations

from torchlint.report.data import Report
from torchlint.report.full import one_line


def render(report: Report) -> str:
    """Return ``path:row: [code] message`` lines."""
    return "".join(
        f"{report.shown(diagnostic.path)}:{diagnostic.start.row}: "
        f"[{diagnostic.code}({diagnostic.name})] {one_line(diagnostic.message)}\n"
        for _, diagnostic in report.in_files()
    )
