"""One self-contained page for a team: findings by rule and by file, with the code, the fix and what it was worth."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import Any

from torchlint import evidence
from torchlint.diagnostic import Diagnostic
from torchlint.engine.result import FileResult
from torchlint.report import summary
from torchlint.report.data import Report, RuleInfo
from torchlint.report.hunks import hunks
from torchlint.report.styled import plain
from torchlint.rule import Described
from torchlint.safety import Safety

_CODE = re.compile(r"`([^`]+)`")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_HEADINGS = {
    "Rule": "",
    "What is wrong": "optional",
    "Findings": "number",
    "Safe fixes": "number optional",
    "Unsafe fixes": "number optional",
}
_APPLIED = (Safety.SAFE, Safety.UNSAFE)


def render(report: Report) -> str:
    """Return the page in ASCII, so that it reads the same in every encoding; it loads nothing."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    headline, *checked = plain(summary.lines(report, hints=False)).splitlines() or [""]
    parts = {
        "policy": escape(policy, quote=False),
        "style": style,
        "script": script,
        "version": escape(report.version),
        "project": escape(os.path.basename(report.root) or report.root),
        "headline": escape(headline),
        "checked": escape(" ".join(line for line in checked if not line.startswith("  "))),
        "problems": _problems(report),
        "overview": _overview(report),
        "data": _embedded(_data(report)),
    }
    page = _PLACEHOLDER.sub(lambda match: parts[match[1]], _asset("page.html"))
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _asset(name: str) -> str:
    return resources.files("torchlint.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest())
    return f"'sha256-{digest.decode('ascii')}'"


def _embedded(data: Mapping[str, Any]) -> str:
    """Return the data as JSON that nothing in it can end: no ``<``, no ``>``, no ``&``."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _problems(report: Report) -> str:
    if not report.problems:
        return ""
    lines = (f"{report.shown(problem.path)}: {problem.message}" for problem in report.problems)
    items = "".join(f"<li>{escape(_whole(line))}</li>" for line in lines)
    return f'<section class="problems"><h2>Not checked</h2><ul>{items}</ul></section>'


def _overview(report: Report) -> str:
    if not report.by_code:
        return ""
    safeties = Counter((d.code, d.fix.safety) for _, d in report.diagnostics() if d.fix)
    ordered = sorted(report.by_code.items(), key=lambda item: (-item[1], item[0]))
    measured = any(evidence.for_rule(code) for code, _ in report.by_code)
    rows = "".join(_row(report, code, name, count, safeties, measured) for (code, name), count in ordered)
    headings = _HEADINGS | ({"Measured": ""} if measured else {})
    head = "".join(f'<th class="{style}">{heading}</th>' for heading, style in headings.items())
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f'<section aria-labelledby="overview"><h2 id="overview">By rule</h2><div class="scroll">{table}</div></section>'
    )


def _row(
    report: Report, code: str, name: str, count: int, safeties: Mapping[tuple[str, Safety], int], measured: bool
) -> str:
    info = _info(report, code, name)
    link = f'<a href="#rule={escape(code)}">{escape(code)}</a> {escape(name)}'
    summarised = _CODE.sub(r"<code>\1</code>", escape(info.summary))
    cells = [
        f"<td>{link}</td>",
        f'<td class="optional">{summarised}</td>',
        f'<td class="number">{count:,}</td>',
        *(f'<td class="number optional">{safeties.get((code, safety), 0):,}</td>' for safety in _APPLIED),
        *([f"<td>{escape(_measured(code))}</td>"] if measured else []),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _info(report: Report, code: str, name: str) -> Described:
    return report.rules.get(code) or RuleInfo(code, name)


def _gain(code: str) -> str:
    """Return the confirmed gains of a rule with their devices, in short; empty where none was confirmed."""
    found = [m for m in evidence.for_rule(code) if m.verdict == "confirmed" and m.figure]
    return ", ".join(f"{m.figure} ({m.quantity}, {m.device})" for m in found)


def _measured(code: str) -> str:
    """Return the gains of a rule, or else what became of its measurements."""
    others = ", ".join(f"{m.verdict} ({m.device})" for m in evidence.for_rule(code))
    return _gain(code) or others or "not yet"


def _data(report: Report) -> dict[str, Any]:
    """Return what the script shows."""
    paths = sorted({diagnostic.path for _, diagnostic in report.diagnostics()})
    indices = {path: index for index, path in enumerate(paths)}
    return {
        "files": [_whole(report.shown(path)) for path in paths],
        "rules": {code: _rule(_info(report, code, name)) for code, name in sorted(report.by_code)},
        "findings": [_finding(result, d, indices[d.path]) for result, d in report.diagnostics()],
    }


def _rule(info: Described) -> dict[str, Any]:
    return {
        "name": info.name,
        "summary": info.summary,
        "help": info.documentation.strip(),
        "gain": _gain(info.code),
        "evidence": [[m.verdict == "confirmed", m.sentence] for m in evidence.for_rule(info.code)],
    }


def _finding(result: FileResult, diagnostic: Diagnostic, file: int) -> dict[str, Any]:
    start, end, fix = diagnostic.start, diagnostic.end, diagnostic.fix
    lines = result.excerpts.lines
    cell = result.cell(start)
    shift = cell.first - 1 if cell else 0
    rows = [row for row in range(max(1, start.row - 1), end.row + 1) if row in lines]
    return {
        "file": file,
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": _whole(diagnostic.message),
        "cell": cell.number if cell else None,
        "range": [[start.row - shift, start.column], [end.row - shift, end.column]],
        "excerpt": [[row - shift, _whole(lines[row])] for row in rows],
        "fix": fix
        and {
            "safety": fix.safety.value,
            "message": _whole(fix.message),
            "why": fix.why,
            "hunks": [
                [hunk.row - shift, [[sign, _whole(line)] for sign, line in hunk.lines]]
                for hunk in hunks(fix, result.excerpts)
            ],
        },
    }


def _whole(text: str) -> str:
    """Return the text with halves of surrogate pairs, which no page can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
