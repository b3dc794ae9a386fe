"""The file of known findings: stable to read and write, and no damage in it is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchlint.api import check_source
from torchlint.project.baseline import (
    Baseline,
    BaselineError,
    Entry,
    counted,
    matched,
    read_baseline,
    rendered,
    write_baseline,
)

TWICE = """import torch


def train():
    torch.autograd.set_detect_anomaly(True)
    step()
    torch.autograd.set_detect_anomaly(True)
"""
CALL = Entry("TL601", "train", "torch.autograd.set_detect_anomaly(True)")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "base.json")
    baseline = Baseline(path, {"b.py": {CALL: 2}, "a\udce4.py": {CALL: 1, Entry("TL101", "", "DataLoader(ä)"): 1}})
    write_baseline(baseline)
    assert read_baseline(path) == baseline
    assert [entry.name for entry in tmp_path.iterdir()] == ["base.json"]


def test_the_text_has_a_line_for_each_entry_in_a_stable_order() -> None:
    one = Baseline("/x", {"b.py": {CALL: 2}, "a.py": {Entry("TL601", "", "b"): 1, Entry("TL101", "", "a"): 1}, "c": {}})
    other = Baseline("/x", {"a.py": {Entry("TL101", "", "a"): 1, Entry("TL601", "", "b"): 1}, "b.py": {CALL: 2}})
    assert rendered(one) == rendered(other)
    assert rendered(one).splitlines()[3:6] == [
        '    "a.py": [',
        '      {"code": "TL101", "scope": "", "statement": "a"},',
        '      {"code": "TL601", "scope": "", "statement": "b"}',
    ]
    assert json.loads(rendered(Baseline("/x")))["findings"] == {}


def test_equal_findings_are_counted() -> None:
    findings = check_source(TWICE, select=["TL601"])
    assert counted(findings) == {CALL: 2}
    assert matched(findings, {CALL: 1}) == [True, False]
    assert matched(findings, {CALL: 2}) == [True, True]
    assert matched(findings, {CALL._replace(scope="other"): 2}) == [False, False]


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = Baseline(str(tmp_path / "sub" / "base.json"), {"../a.py": {CALL: 1}})
    monkeypatch.chdir(tmp_path)
    assert baseline.name("a.py") == "../a.py"
    assert baseline.entries("./a.py") == {CALL: 1}
    (tmp_path / "sub").mkdir()
    assert baseline.gone() == ("../a.py",)
    (tmp_path / "a.py").write_text("")
    assert baseline.gone() == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "damaged in line 1"),
        ("\n<<<<<<< HEAD\n", "damaged in line 2"),
        ("[]", "not a baseline"),
        ('{"results": {}}', "not a baseline"),
        ('{"torchlint-baseline": 2, "findings": {}}', "format 2, this torchlint knows 1"),
        ('{"torchlint-baseline": 1}', "damaged"),
        ('{"torchlint-baseline": 1, "findings": []}', "damaged"),
        ('{"torchlint-baseline": 1, "findings": {"a.py": [1]}}', "damaged"),
        ('{"torchlint-baseline": 1, "findings": {"a.py": [{"code": 1}]}}', "damaged"),
        ('{"torchlint-baseline": 1, "findings": {"a.py": [{"code": "TL1", "count": 0}]}}', "damaged"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=words) as caught:
        read_baseline(str(path))
    assert "\n" not in str(caught.value)


def test_no_file_no_text_and_no_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"there is no baseline .*--write-baseline"):
        read_baseline(str(tmp_path / "base.json"))
    with pytest.raises(BaselineError, match="cannot read"):
        read_baseline(str(tmp_path))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(BaselineError, match="damaged"):
        read_baseline(str(tmp_path / "bytes"))
    with pytest.raises(BaselineError, match="cannot write"):
        write_baseline(Baseline(str(tmp_path / "none" / "base.json")))
