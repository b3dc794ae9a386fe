"""JUnit XML: one suite per file, one failed case per finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult, Status
from torchlint.report.data import Report

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return the findings as failures; a file without findings is one passed case."""
    shown = [result for result in report.results if result.diagnostics or result.status is Status.CHECKED]
    failures = sum(len(result.diagnostics) for result in shown)
    tests = sum(max(1, len(result.diagnostics)) for result in shown)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="torchlint" tests="{tests}" failures="{failures}" errors="0">',
        *(line for result in shown for line in _suite(report, result)),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite(report: Report, result: FileResult) -> Iterator[str]:
    path = _attribute(report.posix(result.path))
    count = len(result.diagnostics)
    yield f'  <testsuite name={path} tests="{max(1, count)}" failures="{count}" errors="0">'
    if not count:
        yield f'    <testcase name="torchlint" classname={path} />'
    for diagnostic in result.diagnostics:
        yield from _case(path, result.in_file(diagnostic))
    yield "  </testsuite>"


def _case(path: str, diagnostic: Diagnostic) -> Iterator[str]:
    row, column = diagnostic.start.row, diagnostic.start.column
    name = _attribute(f"{diagnostic.code} {diagnostic.name}")
    text = _clean(f"line {row}, column {column}: {diagnostic.message}")
    yield f'    <testcase name={name} classname={path} file={path} line="{row}">'
    attributes = f"message={_attribute(diagnostic.message)} type={_attribute(diagnostic.code)}"
    yield f"      <failure {attributes}>{escape(text)}</failure>"
    yield "    </testcase>"


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))
