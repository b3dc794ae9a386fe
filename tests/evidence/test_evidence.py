from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchlint.evidence as evidence
from tests.harness.document_sample import sample_case, sample_document, unmeasurable_case
from torchlint.registry import rules
from torchlint.report.page import page

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:\u00d7|x\b)")
"""A number directly before a times sign."""


def test_shipped_evidence_follows_the_schema() -> None:
    assert [found.device for found in evidence.load()] == sorted(found.device for found in evidence.load())


def test_evidence_is_read_without_torch_or_numpy() -> None:
    code = "import sys, torchlint.evidence as e; e.load(); print([m for m in ('torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_document_becomes_measurements() -> None:
    confirmed, nothing = evidence.parse(sample_document()).measurements
    assert confirmed.figure == "3.10x"
    assert confirmed.sentence == (
        "Confirmed on Some <GPU>, torch 2.4.0: without the fix a step takes 3.10x as long (95 % interval 3.00 to 3.20)."
    )
    assert nothing.figure == ""
    assert nothing.sentence == "Not measurable on Some <GPU>, torch 2.4.0: there is no GPU."


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (sample_document(schema=2), "document.schema is 2"),
        (sample_document(host="nameless"), "unknown 'host'"),
        (sample_document(sample_case(verdict="great")), "document.cases[0].verdict is 'great'"),
        (sample_document(sample_case(ratio="3")), "document.cases[0].ratio is '3', not number or null"),
        (sample_document(sample_case(ratio=0)), "document.cases[0].ratio is 0, not more than 0"),
        (sample_document(sample_case(seconds=True)), "document.cases[0].seconds is True"),
        ({"schema": 1}, "document lacks"),
    ],
)
def test_what_departs_from_the_schema_is_refused(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(evidence.EvidenceError) as caught:
        evidence.parse(document)
    assert problem in str(caught.value)


def unfounded(text: str, code: str) -> list[str]:
    """Return the figures in a rule's page that are no ratio and no bound of an interval that was measured."""
    measured = evidence.for_rule(code)
    known = {f"{value:.2f}" for m in measured for value in (m.ratio, m.low, m.high) if value is not None}
    return [figure for figure in FIGURE.findall(text) if f"{float(figure):.2f}" not in known]


def test_figures_of_pages_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "load", lambda: (evidence.parse(sample_document()),))
    assert unfounded("A step takes 3.10\u00d7 as long (3.00x to 3.20x).", "TL601") == []
    assert unfounded("It is 4.5x or 17x faster, 3x3 kernels aside.", "TL601") == ["4.5", "17"]
    assert unfounded("A step takes 3.10x.", "TL605") == ["3.10"]


def test_unmeasurable_cases_have_no_number() -> None:
    for found in evidence.load():
        for measurement in found.measurements:
            assert (measurement.ratio is None) == (measurement.verdict in ("not measurable", "different"))
    assert unmeasurable_case()["ratio"] is None


def test_pages_quote_measured_figures_only() -> None:
    pages = [(rule.code, ROOT / "rules" / f"{rule.name}.md") for rule in rules()]
    found = {path.name: unfounded(path.read_text(encoding="utf-8"), code) for code, path in pages if path.exists()}
    assert {name: figures for name, figures in found.items() if figures} == {}


def test_the_table_of_the_documentation_is_the_evidence() -> None:
    written = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in written if line.startswith("| TL")]
    assert rows == [_row(measurement) for found in evidence.load() for measurement in found.measurements]
    for found in evidence.load():
        place = f"{found.device}, torch {found.environment['torch']}, {found.environment['threads']} thread"
        assert any(place in line and all(day in line for day in found.dates) for line in written)


def _row(measurement: evidence.Measurement) -> str:
    gain = f"{measurement.figure} ({measurement.low:.2f} to {measurement.high:.2f})" if measurement.figure else ""
    what = measurement.quantity if measurement.figure else measurement.reason
    return f"| {measurement.code} {measurement.name} | {measurement.verdict} | {gain} | {what} |"


def test_a_page_says_what_was_measured_and_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "load", lambda: (evidence.parse(sample_document()),))
    by_code = {rule.code: page(rule) for rule in rules()}
    assert "- Confirmed on Some <GPU>, torch 2.4.0: without the fix a step takes 3.10x as long" in by_code["TL601"]
    assert "- Not measurable on Some <GPU>, torch 2.4.0: there is no GPU." in by_code["TL605"]
    assert "- On a GPU: not measured." in by_code["TL601"]
    assert "Not measured: no figures for this rule are shipped." in by_code["TL101"]
    assert "Nothing to measure: the rule is about what a program computes" in by_code["TL303"]


def test_evidence_names_hardware_and_no_host() -> None:
    here = platform.node()
    for found in evidence.load():
        assert not here or here not in json.dumps(found.environment)
        assert "/" not in found.device
