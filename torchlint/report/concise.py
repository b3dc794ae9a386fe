"""One line per finding, for grep and editors."""

from __future__ import annotations

from collections.abc import Iterator

from torchlint.diagnostic import Diagnostic
from torchlint.report.data import Report
from torchlint.report.full import one_line
from torchlint.report.styled import Line, Span
from torchlint.safety import Safety

_MARKS = {Safety.SAFE: ("[*] ", "safe"), Safety.UNSAFE: ("[unsafe fix] ", "unsafe")}


def lines(report: Report) -> Iterator[Line]:
    """Yield ``path:row:column: code [*] message``; the star marks a safe fix."""
    for result, diagnostic in report.diagnostics():
        where = f":{result.where(diagnostic.start)}: "
        yield [(report.shown(diagnostic.path), "path"), (where, ""), *words(diagnostic)]


def words(diagnostic: Diagnostic) -> list[Span]:
    """Return the code, the mark of the fix and the message."""
    mark = _MARKS.get(diagnostic.fix.safety, ("", "")) if diagnostic.fix else ("", "")
    return [(diagnostic.code, "code"), (" ", ""), mark, (one_line(diagnostic.message), "")]
