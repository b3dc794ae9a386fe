from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tests.harness.document_sample import sample_case, sample_document, unmeasurable_case
from torchlint import evidence
from torchlint.harness import plot, table
from torchlint.harness.devices import Environment
from torchlint.harness.document import document, resumable
from torchlint.harness.errors import HarnessError
from torchlint.harness.measure import Plan


def shown(document: dict) -> str:  # type: ignore[type-arg]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table.results(document))
    return console.export_text()


def test_table_has_a_row_and_a_bar_for_each_rule() -> None:
    text = shown(sample_document())
    assert "Some <GPU>, torch 2.4.0, 1 thread(s)" in text
    row = next(line for line in text.splitlines() if line.startswith("TL601"))
    assert "confirmed" in row
    assert "3.10x" in row
    assert "3.00 to 3.20" in row
    assert "█" in row
    assert "TL605 not measurable: there is no GPU" in text
    assert "1 confirmed, 1 not measurable" in text


def test_a_busy_machine_is_told_by_its_control() -> None:
    assert "busy" not in shown(sample_document())
    control = sample_case(code="A/A", name="self-check", verdict="no effect", ratio=1.04, interval=[0.7, 1.3])
    assert "this machine was busy with something else" in shown(sample_document(control=control)).replace("\n", " ")


@pytest.mark.parametrize(("ratio", "side"), [(2.0, "|█"), (0.7, "█|"), (1.0, "|")])
def test_bars_point_to_gain_or_loss(ratio: float, side: str) -> None:
    assert side in table.bar(ratio).plain


def test_the_plot_is_valid_svg_with_a_dot_for_each_measured_case() -> None:
    root = ElementTree.fromstring(plot.svg(sample_document()))
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(circles) == 2  # the measured case and the control


def test_the_page_escapes_what_it_quotes() -> None:
    page = plot.html(sample_document(sample_case(reason="a < b")))
    assert "a &lt; b" in page
    assert "Some &lt;GPU&gt;" in page


def test_plot_refuses_other_endings(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"\.svg or \.html"):
        plot.write(tmp_path / "plot.png", sample_document())


@pytest.mark.parametrize(
    ("today", "dates"), [("2026-01-01", [None, "2025-12-31"]), ("2026-01-02", ["2026-01-01", "2025-12-31"])]
)
def test_what_an_earlier_run_measured_keeps_its_day(tmp_path: Path, today: str, dates: list[str | None]) -> None:
    written = sample_document(sample_case(), unmeasurable_case(date="2025-12-31"), control=None)
    (tmp_path / "out.json").write_text(json.dumps(written))
    now = Environment(**{**written["environment"], "date": today})
    kept = resumable(tmp_path / "out.json", now)
    assert [case.get("date") for case in kept.values()] == dates
    again = document(now, Plan(), list(kept.values()), None)
    assert evidence.parse(again).dates == ("2025-12-31", "2026-01-01")
    assert "2025-12-31 and 2026-01-01" in plot.svg(again)
