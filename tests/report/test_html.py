"""The structure of the page for teams; `tests/browser` opens it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.report.test_formats import FIX, diagnostic, report
from torchlint import evidence
from torchlint.diagnostic import Position, Range, TextEdit, TextFix
from torchlint.engine.result import Excerpts, FileResult, Problem, Status
from torchlint.evidence import Measurement
from torchlint.report.data import Report
from torchlint.report.html import render
from torchlint.report.hunks import hunks
from torchlint.safety import Safety

ASSETS = Path(__file__).parents[2] / "torchlint" / "report" / "assets"
EVIL = "</script><script>alert(1)</script><!-- & \N{LINE SEPARATOR} é \udcff {{data}}"
VOID = {"meta", "input", "link", "img", "br"}


class Page(HTMLParser):
    """What a parser sees in a page: elements that nest, texts of scripts and styles, attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.raw: list[tuple[dict[str, str], str]] = []
        self.shown = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.elements.append((tag, named))
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("script", "style"):
            self.raw.append(({**named, "tag": tag}, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            attributes, text = self.raw[-1]
            self.raw[-1] = (attributes, text + data)
        else:
            self.shown += data

    def data(self) -> dict[str, Any]:
        (text,) = (text for attributes, text in self.raw if attributes.get("type") == "application/json")
        found: dict[str, Any] = json.loads(text)
        return found


def test_everything_that_comes_from_the_project_is_data() -> None:
    each = report(diagnostic(f"{EVIL}.py", message=EVIL), line=EVIL)
    broken = FileResult(EVIL, Status.FAILED, errors=(Problem(EVIL, EVIL),))
    text = render(Report((*each.results, broken), each.version, f"/{EVIL}", each.rules, each.targets, EVIL))
    page = Page(text)
    assert text.isascii()
    assert [attributes["tag"] for attributes, _ in page.raw] == ["style", "script", "script"]
    expected = EVIL.replace("\udcff", "?")
    (finding,) = page.data()["findings"]
    assert finding["message"] == expected
    assert finding["excerpt"] == [[1, expected]]
    assert page.data()["files"][finding["file"]] == f"{expected}.py"
    assert f"{expected}: {expected}" in page.shown


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    text = render(report(diagnostic()))
    page = Page(text)
    policies = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    (policy,) = policies
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag, name in (("script", "script-src"), ("style", "style-src")):
        (content,) = (t for a, t in page.raw if a["tag"] == tag and a.get("type") != "application/json")
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    attributes = {name for _, named in page.elements for name in named}
    assert not attributes & {"src", "srcset", "style", "action"}
    assert not [name for name in attributes if name.startswith("on")]
    assert all(named["href"].startswith("#") for tag, named in page.elements if "href" in named)
    assert "http://" not in text
    assert "https://" not in text


def test_the_script_makes_no_markup_from_text() -> None:
    script = (ASSETS / "page.js").read_text(encoding="utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "fetch(",
        "import(",
    ):
        assert word not in script
    for path in ASSETS.iterdir():
        assert path.read_bytes().isascii()
        assert path.suffix == ".html" or not re.search(r"</(?:script|style)", path.read_text(encoding="utf-8"))


def test_it_tells_what_was_found_and_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measurement(
        "TL201",
        "create-then-move",
        "confirmed",
        "",
        "time",
        1.46,
        1.4,
        1.52,
        "torchlint",
        "",
        "Device X",
        "2.9",
        "now",
        "cuda",
    )
    monkeypatch.setattr(evidence, "for_rule", lambda code: (measured,) if code == "TL201" else ())
    page = Page(render(report(diagnostic(), diagnostic(fix=None))))
    assert "Found 2 findings in 1 file." in page.shown
    assert "1.46x (time, Device X)" in page.shown
    assert page.data()["rules"]["TL201"]["evidence"] == [[True, measured.sentence]]
    first, second = page.data()["findings"]
    assert first["fix"]["hunks"] == [
        [1, [["-", "x = torch.zeros(3).cuda()"], ["+", 'x = torch.zeros(, device="cuda")']]]
    ]
    assert second["fix"] is None


def test_a_clean_run_says_so() -> None:
    page = Page(render(report()))
    assert "All checks passed." in page.shown
    assert page.data() == {"files": [], "rules": {}, "findings": []}


def test_the_same_run_gives_the_same_bytes() -> None:
    assert render(report(diagnostic())) == render(report(diagnostic()))


def test_fixes_become_hunks() -> None:
    text = "a = 1\nb = (\n    2,\n)\nc = 3\n\nd = 4"
    lines = dict(enumerate(text.split("\n"), start=1))
    edits = (
        TextEdit(Range(0, 0), "import x\r\n"),
        TextEdit(Range(text.index("b"), text.index("c")), ""),
        TextEdit(Range(len(text) - 1, len(text)), "5"),
    )
    offsets = {offset for edit in edits for offset in (edit.range.start, edit.range.end)}
    positions = {at: Position(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) for at in offsets}
    first, second, third = hunks(TextFix("", edits, Safety.SAFE), Excerpts(lines, positions))
    assert (first.row, first.lines) == (1, (("+", "import x"), (" ", "a = 1")))
    assert (second.row, second.lines) == (2, (("-", "b = ("), ("-", "    2,"), ("-", ")"), (" ", "c = 3")))
    assert (third.row, third.lines) == (7, (("-", "d = 4"), ("+", "d = 5")))
    assert hunks(FIX, Excerpts({1: "x = torch.zeros(3).cuda()"}, {16: Position(1, 17), 25: Position(1, 26)}))
