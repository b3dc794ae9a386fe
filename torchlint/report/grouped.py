"""Findings under the path of their file."""

from __future__ import annotations

from collections.abc import Iterator

from torchlint.report.concise import words
from torchlint.report.data import Report
from torchlint.report.styled import Line


def lines(report: Report) -> Iterator[Line]:
    """Yield each path, its findings indented and aligned, and a blank line."""
    for result in report.results:
        if not result.diagnostics:
            continue
        yield [(report.shown(result.path), "path"), (":", "")]
        places = [result.where(diagnostic.start) for diagnostic in result.diagnostics]
        width = max(map(len, places))
        for where, diagnostic in zip(places, result.diagnostics, strict=True):
            yield [(f"  {where:<{width}}  ", "dim"), *words(diagnostic)]
        yield []
