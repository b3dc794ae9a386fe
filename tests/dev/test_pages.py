"""The folder ``rules/`` and the index say what the rules say."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.dev.pages import outdated, pages, write
from torchlint.registry import rules

ROOT = Path(__file__).parents[2]


def test_the_pages_are_current() -> None:
    assert outdated(ROOT) == [], "run `make rules`"


def test_writing_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    retired = tmp_path / "rules" / "retired-rule.md"
    retired.parent.mkdir()
    retired.write_text("old")
    assert {"rules/retired-rule.md", "torchlint/rules/index.json"} <= set(write(tmp_path))
    assert outdated(tmp_path) == []
    assert not retired.exists()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_page_holds_words_examples_silences_and_references(rule) -> None:
    page = pages(ROOT)[f"rules/{rule.name}.md"]
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert rule.examples[0].bad.strip() in page
    assert all(sentence in page for sentence in rule.silences.values())
    assert all(reference in page for reference in rule.references)
    assert page.count("```") % 2 == 0
