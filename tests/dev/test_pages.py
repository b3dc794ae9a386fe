"""The folder ``rules/`` says what the rules say."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.dev.pages import outdated, pages, write
from torchlint.registry import rules

FOLDER = Path(__file__).parents[2] / "rules"


def test_the_pages_are_current() -> None:
    assert outdated(FOLDER) == [], "run `make rules`"


def test_writing_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "retired-rule.md").write_text("old")
    assert "retired-rule.md" in write(tmp_path)
    assert outdated(tmp_path) == []
    assert not (tmp_path / "retired-rule.md").exists()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_page_holds_words_examples_silences_and_references(rule) -> None:
    page = pages(FOLDER.parent)[f"{rule.name}.md"]
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert rule.examples[0].bad.strip() in page
    assert all(sentence in page for sentence in rule.silences.values())
    assert all(reference in page for reference in rule.references)
    assert page.count("```") % 2 == 0
