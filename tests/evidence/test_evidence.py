from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchlint.evidence as evidence
from tests.harness.document_sample import sample_case, sample_document, unmeasurable_case

ROOT = Path(__file__).parents[2]


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
        "Confirmed on Some <GPU>, torch 2.4.0: without the fix a step takes 3.10x (95 % interval 3.00 to 3.20)."
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


def test_figures_of_pages_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "load", lambda: (evidence.parse(sample_document()),))
    assert evidence.unfounded("A step takes 3.10\u00d7 as long (3.00x to 3.20x).", "TL601") == []
    assert evidence.unfounded("It is 4.5x or 17x faster, 3x3 kernels aside.", "TL601") == ["4.5", "17"]
    assert evidence.unfounded("A step takes 3.10x.", "TL605") == ["3.10"]


def test_unmeasurable_cases_have_no_number() -> None:
    for found in evidence.load():
        for measurement in found.measurements:
            assert (measurement.ratio is None) == (measurement.verdict in ("not measurable", "different"))
    assert unmeasurable_case()["ratio"] is None


def test_pages_quote_measured_figures_only() -> None:
    from torchlint.registry import rules

    pages = [(rule.code, ROOT / "rules" / f"{rule.name}.md") for rule in rules()]
    found = {
        page.name: evidence.unfounded(page.read_text(encoding="utf-8"), code) for code, page in pages if page.exists()
    }
    assert {name: figures for name, figures in found.items() if figures} == {}
