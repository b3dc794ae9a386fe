"""Unused suppressions and their removal."""

from __future__ import annotations

import pytest

from torchlint.engine.unused import removal, unused_suppressions
from torchlint.source import source_from_text
from torchlint.suppress import apply


def removed(text: str, enabled: str = "TL101 TL201") -> str:
    source = source_from_text(text)
    known = {"TL101": "dataloader-no-workers", "TL201": "create-then-move"}
    for unused in reversed(apply(source, [], enabled.split(), known).unused):
        edit = removal(text, unused)
        text = text[: edit.range.start] + edit.content + text[edit.range.end :]
    return text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # torchlint: ignore[TL101]\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1  # torchlint: ignore[TL101] for a reason\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("x = 1  # torchlint: ignore", "x = 1"),
        ("x = 1  # torchlint: ignore[TL101]  # noqa: E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # type: ignore  # torchlint: ignore[TL101]\n", "x = 1  # type: ignore\n"),
        ("x = 1\n  # torchlint: ignore[TL101]\ny = 2\n", "x = 1\ny = 2\n"),
        ("# torchlint: ignore[TL101]", ""),
    ],
)
def test_the_comment_goes_with_its_reason(before: str, after: str) -> None:
    assert removed(before) == after


def test_codes_that_are_not_enabled_stay() -> None:
    before = "x = 1  # torchlint: ignore[TL101, TL201] why\n"
    assert removed(before, enabled="TL101") == "x = 1  # torchlint: ignore[TL201] why\n"


def test_a_foreign_comment_stays() -> None:
    assert removed("x = 1  # noqa: TL101\n") == "x = 1  # noqa: TL101\n"


def test_the_finding_names_the_codes() -> None:
    source = source_from_text("x = 1  # torchlint: ignore[TL101]\n")
    (finding,) = unused_suppressions(source, apply(source, [], ["TL101"], {"TL101": "dataloader-no-workers"}).unused)
    assert finding.code == "TL001"
    assert "TL101" in finding.message
    assert (finding.start.row, finding.start.column) == (1, 8)
