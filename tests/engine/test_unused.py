"""Unused suppressions and their removal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchlint.api import check_source
from torchlint.diagnostic import Severity
from torchlint.engine.file import check_file
from torchlint.engine.unused import removal, unused_suppressions
from torchlint.registry import rules
from torchlint.rule import Default
from torchlint.semantics.process.target import UNKNOWN_TARGET, Target
from torchlint.settings import Settings
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
    unused = apply(source, [], ["TL101"], {"TL101": "dataloader-no-workers"}).unused
    (finding,) = unused_suppressions(source, unused, Settings())
    assert finding.code == "TL001"
    assert "TL101" in finding.message
    assert (finding.start.row, finding.start.column) == (1, 8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[TL101, TL999]", "[TL999]"),
        ("[create-then-move, TL101]", "[create-then-move]"),
        ("[TL101 , TL201,]", "[TL201]"),
    ],
)
def test_words_that_are_not_unused_stay_as_they_are(before: str, after: str) -> None:
    assert removed(f"x = 1  # torchlint: ignore{before}\n", "TL101") == f"x = 1  # torchlint: ignore{after}\n"


LINE = "import torch\nx = 1  # torchlint: ignore[TL601]\n"


def test_a_suppression_is_unused_only_if_its_rule_looked() -> None:
    assert [finding.code for finding in check_source(LINE)] == ["TL001"]
    assert check_source(LINE, select=["TL601"]) == []
    assert check_source(LINE, select=["TL101", "TL001"]) == []
    assert [finding.code for finding in check_source(LINE, select=["TL601", "TL001"])] == ["TL001"]
    assert check_source(LINE, ignore=["TL601"]) == []
    assert check_source(LINE, filename="tests/test_a.py") == []
    assert check_source(LINE, per_file_ignores={"*.py": ("TL601",)}, filename="a.py") == []


def test_a_rule_that_is_off_or_for_another_torch_does_not_look() -> None:
    off = next(rule for rule in rules() if rule.default is Default.PREVIEW)
    line = LINE.replace("TL601", off.code)
    assert check_source(line) == []
    assert [finding.code for finding in check_source(line, select=["ALL"])] == ["TL001"]
    newer = replace(off, torch=">=2.0")
    for target, count in ((UNKNOWN_TARGET, 0), (Target((2, 1), "the test"), 1)):
        assert len(check_file(source_from_text(line), Settings(), [newer], target).diagnostics) == count


def test_unused_suppressions_obey_the_settings() -> None:
    assert check_source(LINE, ignore=["TL001"]) == []
    assert check_source(LINE, per_file_ignores={"a.py": ("TL001",)}, filename="a.py") == []
    assert check_source(LINE, per_file_ignores={"a.py": ("unused-suppression",)}, filename="b.py") != []
    (finding,) = check_source(LINE)
    assert finding.severity is Severity.INFO
    assert finding.fix
    (finding,) = check_source(LINE, severity={"TL0": "error"}, unfixable=("TL001",))
    assert finding.severity is Severity.ERROR
    assert finding.fix is None
    with pytest.raises(ValueError, match="unknown rule 'TL9999'"):
        check_source(LINE, severity={"TL9999": "error"})


@pytest.mark.parametrize("comment", ["#torchlint:ignore[TL601]", "# torchlint : ignore[TL601]", "# torchlint: ignore"])
@pytest.mark.parametrize("head", ["", "import os\n"])
def test_no_screen_hides_an_unused_suppression(head: str, comment: str) -> None:
    codes = [finding.code for finding in check_source(f"{head}x = 1  {comment}\n", select=["TL601", "TL001"])]
    assert codes == ["TL001"]


def test_foreign_comments_change_nothing_about_ours() -> None:
    call = "import torch\ntorch.autograd.set_detect_anomaly(True)"
    assert check_source(f"{call}  # noqa: TL601\n") == []
    assert check_source(f"{call}  # noqa  # torchlint: ignore[TL601]\n") == []
    assert check_source("x = 1  # noqa: TL601\n") == []
    codes = [finding.code for finding in check_source(f"{call}  # noqa: TL601  # torchlint: ignore[TL101]\n")]
    assert codes == ["TL001"]
