"""Where the user stands after a run, and what to do next."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from torchlint.engine.result import Status
from torchlint.report.data import Report, plural
from torchlint.report.styled import Line
from torchlint.safety import Safety


def lines(report: Report, *, hints: bool = True) -> Iterator[Line]:
    """Yield what was checked, what was found, what of it can be fixed, and the next command."""
    found = sum(report.by_code.values())
    if not found:
        yield from _clean(report)
        yield _checked(report)
        yield from _skipped(report)
        return
    files = sum(bool(result.diagnostics) for result in report.results)
    yield [("Found " + plural(found, "finding") + " in " + plural(files, "file") + ".", "strong")]
    yield _checked(report)
    yield from _skipped(report)
    yield from _counts(report)
    yield from _fixable(report)
    if hints:
        yield from _next(report)


def _clean(report: Report) -> Iterator[Line]:
    """Yield the good news, unless no file was seen at all."""
    if report.problems:
        return
    torch = report.by_status[Status.CHECKED] + report.by_status[Status.SCREENED]
    if torch:
        yield [("All checks passed.", "good")]
    elif report.by_status[Status.NO_TORCH]:
        yield [("No torch here: nothing to check.", "good")]


def _checked(report: Report) -> Line:
    seen = sum(count for status, count in report.by_status.items() if status is not Status.SKIPPED)
    torch = report.by_status[Status.CHECKED] + report.by_status[Status.SCREENED]
    words = f"Checked {plural(seen, 'file')}, {torch:,} of which {'uses' if torch == 1 else 'use'} torch"
    if torch and report.targets:
        (target, _), *others = Counter(report.targets).most_common()
        words += f"; target torch {target}"
        words += f" and {plural(len(others), 'other')}" if others else ""
    return [(words + ".", "dim")]


def _skipped(report: Report) -> Iterator[Line]:
    notes = Counter(result.note for result in report.results if result.status is Status.SKIPPED)
    for note, count in sorted(notes.items()):
        yield [(f"Skipped {plural(count, 'file')}: {note}.", "dim")]
    suppressed = sum(result.suppressed for result in report.results)
    if suppressed:
        yield [(f"Suppressed by comments: {plural(suppressed, 'finding')}.", "dim")]
    baselined = sum(result.baselined for result in report.results)
    if baselined:
        yield [(f"Known from the baseline: {plural(baselined, 'finding')}.", "dim")]
    unchanged = sum(result.unchanged for result in report.results)
    if unchanged:
        yield [(f"On lines that did not change: {plural(unchanged, 'finding')}.", "dim")]


def _counts(report: Report) -> Iterator[Line]:
    width = len(f"{max(report.by_code.values()):,}")
    for (code, name), count in sorted(report.by_code.items(), key=lambda item: (-item[1], item[0])):
        yield [(f"  {count:>{width},}  ", ""), (code, "code"), (f" {name}", "")]


def _fixable(report: Report) -> Iterator[Line]:
    safe, unsafe = report.by_safety[Safety.SAFE], report.by_safety[Safety.UNSAFE]
    if safe and unsafe:
        yield [("Fixable: ", ""), (f"{safe:,} safely", "safe"), (f", {unsafe:,} more with --unsafe-fixes.", "")]
    elif safe:
        yield [("Fixable: ", ""), (f"{safe:,} safely.", "safe")]
    elif unsafe:
        yield [("Fixable: ", ""), (f"{unsafe:,} with --unsafe-fixes.", "unsafe")]
    else:
        yield [("None of them can be fixed automatically: each message says what to do.", "")]


def _next(report: Report) -> Iterator[Line]:
    safe, unsafe = report.by_safety[Safety.SAFE], report.by_safety[Safety.UNSAFE]
    tail = f" {report.command}" if report.command else ""
    if safe:
        yield [("Next: ", "dim"), (f"torchlint fix{tail}", "hint"), ("  shows the safe fixes as a diff", "dim")]
    elif unsafe:
        yield [
            ("Next: ", "dim"),
            (f"torchlint fix --unsafe-fixes{tail}", "hint"),
            ("  shows the fixes as a diff", "dim"),
        ]
    else:
        code = min(report.by_code)[0]
        yield [("Next: ", "dim"), (f"torchlint rules {code}", "hint"), ("  explains the finding", "dim")]


def statistics(report: Report) -> Iterator[Line]:
    """Yield one line per rule: findings, code, ``[*]`` where a safe fix is among them, name."""
    if not report.by_code:
        return
    width = len(str(max(report.by_code.values())))
    for (code, name), count in sorted(report.by_code.items(), key=lambda item: (-item[1], item[0])):
        star = "[*]" if _fixable_safely(report, code) else "[ ]"
        yield [(f"{count:>{width}}  ", ""), (code, "code"), (f"  {star} ", "safe"), (name, "")]


def statistics_json(report: Report) -> str:
    """Return the counts as JSON."""
    ordered = sorted(report.by_code.items(), key=lambda item: (-item[1], item[0]))
    data = [
        {"code": code, "name": name, "count": count, "fixable": _fixable_safely(report, code)}
        for (code, name), count in ordered
    ]
    return json.dumps(data, indent=2) + "\n"


def _fixable_safely(report: Report, code: str) -> bool:
    fixes = (diagnostic.fix for _, diagnostic in report.diagnostics() if diagnostic.code == code)
    return any(fix is not None and fix.safety is Safety.SAFE for fix in fixes)
