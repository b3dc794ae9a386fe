"""JUnit XML: one suite per file, one failed case per finding, one erroneous case per problem."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult, Status
from torchlint.report.data import Report

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return findings as failures, what kept files from being checked as errors; a clean file is one passed case."""
    shown = [r for r in report.results if r.diagnostics or r.errors or r.status is Status.CHECKED]
    totals = _counts(sum((_tally(result) for result in shown), Counter()))
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="torchlint" {totals}>',
        *(line for result in shown for line in _suite(report, result)),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _tally(result: FileResult) -> Counter[str]:
    failures, errors = len(result.diagnostics), len(result.errors)
    return Counter(tests=max(1, failures + errors), failures=failures, errors=errors)


def _counts(tally: Counter[str]) -> str:
    return " ".join(f'{name}="{tally[name]}"' for name in ("tests", "failures", "errors"))


def _suite(report: Report, result: FileResult) -> Iterator[str]:
    path = _attribute(report.posix(result.path))
    yield f"  <testsuite name={path} {_counts(_tally(result))}>"
    if not result.diagnostics and not result.errors:
        yield f'    <testcase name="torchlint" classname={path} />'
    for problem in result.errors:
        yield f'    <testcase name="torchlint" classname={path} file={path}>'
        yield f"      <error message={_attribute(problem.message)}>{escape(_clean(str(problem)))}</error>"
        yield "    </testcase>"
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
