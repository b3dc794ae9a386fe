"""Results for people: a table with a bar for each rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchlint.harness.verdict import Verdict

STYLES = {
    Verdict.CONFIRMED.value: "green",
    Verdict.NO_EFFECT.value: "dim",
    Verdict.SLOWER.value: "yellow",
    Verdict.DIFFERENT.value: "bold red",
    Verdict.NOT_MEASURABLE.value: "dim",
}
_WIDTH = 13
CALM = 0.05
"""How far the interval of a program against itself may reach on a machine that can measure."""

_WIDEST = 8.0
"""The ratio that fills the bar."""


def results(found: Mapping[str, Any]) -> RenderableType:
    """Return the document of a run as a table."""
    environment = found["environment"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rule", no_wrap=True)
    table.add_column("verdict", no_wrap=True, min_width=14)
    table.add_column("gain", no_wrap=True, min_width=6, justify="right")
    table.add_column("of", no_wrap=True, min_width=6)
    table.add_column("95 % interval", no_wrap=True, min_width=13)
    table.add_column("", no_wrap=True, min_width=_WIDTH)
    for case in found["cases"]:
        table.add_row(*_row(case))
    if found["control"]:
        table.add_row(*_row(found["control"]))
    header = f"{environment['device']}, torch {environment['torch']}, {environment['threads']} thread(s)"
    notes = [*_notes(found["cases"]), *_warnings(found["control"])]
    return Group(Text(header, style="bold"), table, *notes, Text(_tally(found["cases"])))


def _row(case: Mapping[str, Any]) -> tuple[str | Text, ...]:
    rule, verdict = f"{case['code']} {case['name']}", Text(case["verdict"], STYLES[case["verdict"]])
    if case["ratio"] is None:
        return (rule, verdict)
    low, high = case["interval"]
    return (rule, verdict, f"{case['ratio']:.2f}x", case["quantity"], f"{low:.2f} to {high:.2f}", bar(case["ratio"]))


def bar(ratio: float) -> Text:
    """Return a bar from the middle: gains to the right, losses to the left, on a logarithmic scale."""
    middle = _WIDTH // 4
    reach = math.log(ratio) / math.log(_WIDEST)
    if ratio >= 1:
        length = min(_WIDTH - middle - 1, round(reach * (_WIDTH - middle - 1)))
        return Text(" " * middle + "|") + Text("█" * length, "green")
    length = min(middle, math.ceil(-reach * (_WIDTH - middle - 1)))
    return Text(" " * (middle - length)) + Text("█" * length, "yellow") + Text("|")


def _notes(cases: Sequence[Mapping[str, Any]]) -> list[Text]:
    notes = []
    for case in cases:
        reason = case["reason"]
        if case["quantity"] == "memory" and case["time_ratio"] is not None:
            low, high = case["time_interval"]
            reason = "; ".join(filter(None, (reason, f"time {case['time_ratio']:.2f}x ({low:.2f} to {high:.2f})")))
        if reason:
            notes.append(Text(f"{case['code']} {case['verdict']}: {reason}", STYLES[case["verdict"]]))
    return notes


def _warnings(control: Mapping[str, Any] | None) -> list[Text]:
    """Return what the control says about the machine, if it says that it was busy."""
    if control is None or control["ratio"] is None:
        return []
    low, high = control["interval"]
    width = (high - low) / (2 * control["ratio"])
    if width <= CALM and control["verdict"] == Verdict.NO_EFFECT.value:
        return []
    told = (
        f"A program against itself gives {control['ratio']:.2f}x ({low:.2f} to {high:.2f}): this machine was busy with"
    )
    return [Text(f"{told} something else. Measure again when it is quiet.", "yellow")]


def _tally(cases: Sequence[Mapping[str, Any]]) -> str:
    counts = {verdict.value: sum(case["verdict"] == verdict.value for case in cases) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
