"""A forest plot of ratios and intervals, as an SVG or an HTML page; no plotting library needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from torchlint.atomic import write_output
from torchlint.harness.errors import HarnessError

_COLORS = {
    "confirmed": "#1a7f37",
    "no effect": "#6e7781",
    "slower": "#bf8700",
    "different": "#cf222e",
    "not measurable": "#6e7781",
}
_ROW, _TOP, _LEFT, _PLOT, _RIGHT = 26, 64, 270, 420, 230
_TICKS = (0.25, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 8, 12, 20, 50, 100, 200, 500)


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the plot of a document; the ending of the path says in which form.

    Raises:
        HarnessError: the ending is unknown, or the file cannot be written.
    """
    forms = {".svg": svg, ".html": html}
    if path.suffix not in forms:
        raise HarnessError(f"--plot writes .svg or .html, not {path.name!r}")
    try:
        write_output(str(path), forms[path.suffix](found).encode())
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}") from error


def html(found: Mapping[str, Any]) -> str:
    """Return a page with the plot and the sentences that belong to it."""
    items = "".join(
        f"<li><b>{escape(case['code'])} {escape(case['name'])}</b>: {escape(case['verdict'])}. "
        f"{escape(_words(case))}</li>"
        for case in found["cases"]
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>torchlint bench</title>'
        "<style>body{font:15px system-ui,sans-serif;margin:2em auto;max-width:60em}svg{max-width:100%}</style>"
        f"{svg(found)}<ul>{items}</ul></html>\n"
    )


def svg(found: Mapping[str, Any]) -> str:
    """Return the plot: one row per rule, a dot for the ratio, a line for the interval, on a logarithmic axis."""
    cases = [*found["cases"], *([found["control"]] if found["control"] else [])]
    low, high = _range(cases)
    height = _TOP + _ROW * len(cases) + 40
    width = _LEFT + _PLOT + _RIGHT

    def x(ratio: float) -> float:
        return _LEFT + _PLOT * (math.log(ratio) - math.log(low)) / (math.log(high) - math.log(low))

    environment = found["environment"]
    days = sorted({case.get("date", environment["date"]) for case in cases})
    title = f"{environment['device']}, torch {environment['torch']}, {' and '.join(days)}"
    bottom = _TOP + _ROW * len(cases)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui,sans-serif" font-size="13" role="img">',
        f"<title>What the fixes gain on {escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="24" font-size="16" font-weight="600">Original over fixed, with 95 % intervals</text>',
        f'<text x="12" y="44" fill="#57606a">{escape(title)}; right of 1 is a gain</text>',
        *(part for tick in _TICKS if low <= tick <= high for part in _tick(tick, x(tick), bottom)),
    ]
    for index, case in enumerate(cases):
        parts += _row(case, _TOP + _ROW * index + _ROW / 2, x)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _tick(tick: float, x: float, bottom: int) -> list[str]:
    line = 'stroke="#24292f"' if tick == 1 else 'stroke="#d0d7de" stroke-dasharray="2 4"'
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" {line}/>',
        f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#57606a">{tick:g}</text>',
    ]


def _row(case: Mapping[str, Any], y: float, x: Any) -> list[str]:
    color = _COLORS[case["verdict"]]
    parts = [f'<text x="12" y="{y + 4:.1f}">{escape(case["code"])} {escape(case["name"])}</text>']
    end = _LEFT + _PLOT + 14
    if case["ratio"] is None:
        parts.append(f'<text x="{end}" y="{y + 4:.1f}" fill="{color}">{escape(case["verdict"])}</text>')
        return parts
    low, high = case["interval"]
    line = f'x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
    parts.append(f'<line {line} stroke="{color}" stroke-width="3"/>')
    parts.append(f'<circle cx="{x(case["ratio"]):.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>')
    unit = " memory" if case["quantity"] == "memory" else ""
    label = f"{case['ratio']:.2f}x ({low:.2f} to {high:.2f}){unit}"
    parts.append(f'<text x="{end}" y="{y + 4:.1f}" fill="{color}">{escape(label)}</text>')
    return parts


def _range(cases: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    bounds = [bound for case in cases for bound in case["interval"] or ()]
    return min([0.8, *bounds]) / 1.05, max([1.5, *bounds]) * 1.05


def _words(case: Mapping[str, Any]) -> str:
    equality = case["equality"]["detail"] if case["equality"] else "not compared"
    return "; ".join(filter(None, (case["reason"], f"outputs: {equality}", case["program"])))
