"""Old repositories: what is known waits, what is new counts, and ``fix`` touches only what ``check`` reports."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.repository import commit, git

SCRIPT = """import torch


def train(optimizer):
    torch.autograd.set_detect_anomaly(True)
    optimizer.step()
"""
"""One finding with a safe fix: TL601 on row 5."""

LINE = "    torch.autograd.set_detect_anomaly(True)\n"


@pytest.fixture
def old(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit with a finding in ``a.py`` and in ``b.py``."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("a.py", "b.py"):
        (project / name).write_text(SCRIPT)
    git(project, "init", "-q", "-b", "main")
    commit(project)
    return project


def places(outcome_text: str) -> list[str]:
    """Return the places in a concise report."""
    return [line.split(" ")[0] for line in outcome_text.splitlines() if ": TL" in line]


def test_known_findings_wait_wherever_they_move(old: Path, invoke: Invoke) -> None:
    outcome = invoke("check", "--write-baseline", "base.json", ".")
    assert outcome.code == 0
    assert outcome.out == ""
    assert "Wrote 2 findings in 2 files to base.json" in outcome.err
    written = (old / "base.json").read_text()
    clean = invoke("check", "--baseline", "base.json", ".")
    assert clean.code == 0
    assert "Known from the baseline: 2 findings." in clean.out
    (old / "a.py").write_text("# moved\n\n\n" + SCRIPT.replace("(True)", "( True )  # why"))
    assert invoke("check", "--baseline", "base.json", ".").code == 0
    assert invoke("check", "--write-baseline", "base.json", ".").code == 0
    assert (old / "base.json").read_text() == written


def test_a_new_finding_like_a_known_one_is_reported(old: Path, invoke: Invoke) -> None:
    invoke("check", "--write-baseline", "base.json", ".")
    (old / "a.py").write_text(SCRIPT + LINE)
    outcome = invoke("check", "--baseline", "base.json", "--output-format", "concise", ".")
    assert outcome.code == 1
    assert places(outcome.out) == ["a.py:7:5:"]


def test_what_is_fixed_can_leave_the_baseline(old: Path, invoke: Invoke) -> None:
    invoke("check", "--write-baseline", "base.json", ".")
    (old / "a.py").write_text(SCRIPT.replace(LINE, ""))
    git(old, "mv", "b.py", "c.py")
    outcome = invoke("check", "--baseline", "base.json", "--output-format", "concise", ".")
    assert outcome.code == 1
    assert places(outcome.out) == ["c.py:5:5:"]
    note = "Baseline base.json: 1 finding no longer there and 1 finding in 1 file that was renamed or removed;"
    assert note in outcome.err
    assert "no longer" not in invoke("check", "--baseline", "base.json", "--select", "TL101", "a.py").err
    again = invoke("check", "--write-baseline", "base.json", ".")
    assert "Wrote 1 finding in 1 file to base.json; 2 entries of before dropped." in again.err
    assert list(json.loads((old / "base.json").read_text())["findings"]) == ["c.py"]


def test_what_was_not_looked_for_stays_in_the_baseline(old: Path, invoke: Invoke) -> None:
    invoke("check", "--write-baseline", "base.json", ".")
    before = (old / "base.json").read_text()
    invoke("check", "--write-baseline", "base.json", "--select", "TL101", "a.py")
    assert (old / "base.json").read_text() == before
    (old / "a.py").write_bytes(b"\xff")
    assert invoke("check", "--write-baseline", "base.json", ".").code == 2
    assert (old / "base.json").read_text() == before


def test_the_settings_name_a_baseline(old: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    (old / "torchlint.toml").write_text('baseline = "known/base.json"\n')
    outcome = invoke("check", ".")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "error: there is no baseline known/base.json; `torchlint check --write-baseline known/base.json` writes it"
    ]
    (old / "known").mkdir()
    assert invoke("check", "--write-baseline", "known/base.json", ".").code == 0
    assert invoke("check", ".").code == 0
    assert invoke("check", "--no-baseline", ".").code == 1
    assert invoke("check", "--isolated", ".").code == 1
    (old / "sub").mkdir()
    (old / "sub" / "c.py").write_text(SCRIPT)
    monkeypatch.chdir(old / "sub")
    assert places(invoke("check", "--output-format", "concise", "..").out) == ["../sub/c.py:5:5:"]
    assert invoke("check", "--baseline", "../known/base.json", "../a.py").code == 0


def test_text_from_standard_input_has_a_baseline(old: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("check", "--write-baseline", "base.json", ".")
    for name, code in (("a.py", 0), ("new.py", 1)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"\n{SCRIPT}".encode())))
        assert invoke("check", "--baseline", "base.json", "--stdin-filename", name, "-").code == code


@pytest.mark.parametrize("text", ["{", "[]", '{"torchlint-baseline": 9}'])
def test_a_broken_baseline_is_an_error_and_kept(old: Path, invoke: Invoke, text: str) -> None:
    (old / "base.json").write_text(text)
    for option in ("--baseline", "--write-baseline"):
        outcome = invoke("check", option, "base.json", ".")
        assert outcome.code == 2
        assert outcome.out == ""
        assert len(outcome.err.splitlines()) == 1
    assert (old / "base.json").read_text() == text


@pytest.mark.parametrize("other", [["--since", "HEAD"], ["--fix"], ["--diff"], ["-"]])
def test_a_baseline_is_written_from_all_findings(old: Path, invoke: Invoke, other: list[str]) -> None:
    outcome = invoke("check", "--write-baseline", "base.json", *other)
    assert outcome.code == 2
    assert not (old / "base.json").exists()


def test_fix_leaves_what_is_known(old: Path, invoke: Invoke) -> None:
    invoke("check", "--write-baseline", "base.json", ".")
    (old / "a.py").write_text(SCRIPT + LINE)
    assert invoke("fix", "--baseline", "base.json", "--apply", ".").code == 0
    assert (old / "a.py").read_text() == SCRIPT
    assert (old / "b.py").read_text() == SCRIPT
    assert invoke("check", "--baseline", "base.json", ".").code == 0


def test_only_changed_lines_count(old: Path, invoke: Invoke) -> None:
    outcome = invoke("check", "--since", "HEAD", ".")
    assert outcome.code == 0
    assert "Changed since HEAD: 0 of 2 files." in outcome.err
    (old / "a.py").write_text(SCRIPT + LINE)
    git(old, "mv", "b.py", "c.py")
    (old / "new.py").write_text(SCRIPT)
    outcome = invoke("check", "--since", "HEAD", "--output-format", "concise", ".")
    assert outcome.code == 1
    assert places(outcome.out) == ["a.py:7:5:", "new.py:5:5:"]
    assert "Changed since HEAD: 2 of 3 files." in outcome.err
    assert "On lines that did not change: 1 finding." in outcome.out
    assert "torchlint fix --since HEAD ." in outcome.out


def test_a_row_taken_out_of_a_call_changes_the_call(old: Path, invoke: Invoke) -> None:
    loader = (
        "from torch.utils.data import DataLoader\nl = DataLoader(\n    d,\n    num_workers=4,\n    batch_size=8,\n)\n"
    )
    (old / "l.py").write_text(loader)
    commit(old)
    (old / "l.py").write_text(loader.replace("    num_workers=4,\n", ""))
    outcome = invoke("check", "--since", "HEAD", "--select", "TL101", "--output-format", "concise", ".")
    assert places(outcome.out) == ["l.py:2:5:"]


def test_a_syntax_error_in_a_changed_file_counts(old: Path, invoke: Invoke) -> None:
    (old / "a.py").write_text("x = (\n" + SCRIPT)
    outcome = invoke("check", "--since", "HEAD", "--output-format", "concise", ".")
    assert [line.split(" ")[1] for line in outcome.out.splitlines() if ": TL" in line] == ["TL000"]


def test_fix_leaves_what_did_not_change(old: Path, invoke: Invoke) -> None:
    (old / "a.py").write_text("# new\n" + SCRIPT + LINE)
    outcome = invoke("fix", "--since", "HEAD", "--apply", ".")
    assert outcome.code == 0
    assert (old / "a.py").read_text() == "# new\n" + SCRIPT
    assert (old / "b.py").read_text() == SCRIPT


def test_a_wrong_revision_is_one_line(old: Path, invoke: Invoke) -> None:
    for command in ("check", "fix"):
        outcome = invoke(command, "--since", "nowhere", ".")
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("error: --since nowhere: there is no such revision")
        assert len(outcome.err.splitlines()) == 1
    assert invoke("check", "--since", "HEAD", "-").code == 2


@pytest.mark.parametrize(("level", "code"), [("info", 1), ("warning", 1), ("error", 0)])
def test_only_findings_of_the_level_fail(project: Path, invoke: Invoke, level: str, code: int) -> None:
    (project / "a.py").write_text(SCRIPT)
    assert invoke("check", "--fail-level", level, ".").code == code
    assert "TL601" in invoke("check", "--fail-level", level, ".").out
    assert invoke("fix", "--fail-level", level, ".").code == code
    (project / "torchlint.toml").write_text(f'fail-level = "{level}"\n')
    assert invoke("check", ".").code == code
    assert invoke("check", "--fail-level", "info", ".").code == 1
    (project / "torchlint.toml").write_text(f'fail-level = "{level}"\nseverity = {{ TL6 = "error" }}\n')
    assert invoke("check", ".").code == 1


def test_a_syntax_error_fails_at_every_level(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text("x = (\n")
    assert invoke("check", "--fail-level", "error", ".").code == 1


def test_no_more_findings_are_printed_than_wanted(project: Path, invoke: Invoke) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text(SCRIPT)
    outcome = invoke("check", "--max-findings", "2", "--output-format", "concise", ".")
    assert outcome.code == 1
    assert places(outcome.out) == ["a.py:5:5:", "b.py:5:5:"]
    assert "Found 3 findings in 3 files." in outcome.out
    assert "... and 1 more finding (--max-findings 2)." in outcome.err
    none = invoke("check", "--max-findings", "0", "--output-format", "json", ".")
    assert (none.code, json.loads(none.out)) == (1, [])
    assert "more finding" not in invoke("check", "--max-findings", "3", ".").err
    assert "3  TL601" in invoke("check", "--max-findings", "1", "--statistics", ".").out


def test_comments_are_shown_then_written_and_silence(old: Path, invoke: Invoke) -> None:
    shown = invoke("check", "--add-ignore", ".")
    assert shown.code == 1
    assert "+    torch.autograd.set_detect_anomaly(True)  # torchlint: ignore[TL601]\n" in shown.out
    assert "2 findings would be silenced in 2 files:" in shown.err
    assert (old / "a.py").read_text() == SCRIPT
    written = invoke("check", "--add-ignore", "--apply", ".")
    assert written.code == 0
    assert written.out == ""
    assert "2 findings silenced in 2 files:" in written.err
    assert invoke("check", ".").code == 0
    text = (old / "a.py").read_text()
    assert "There is nothing to silence." in invoke("check", "--add-ignore", "--apply", ".").err
    assert (old / "a.py").read_text() == text


def test_comments_go_only_to_what_counts(old: Path, invoke: Invoke) -> None:
    (old / "a.py").write_text(SCRIPT + LINE)
    invoke("check", "--add-ignore", "--apply", "--since", "HEAD", ".")
    silenced = LINE.replace("\n", "  # torchlint: ignore[TL601]\n")
    assert (old / "a.py").read_text() == SCRIPT + silenced
    assert (old / "b.py").read_text() == SCRIPT
    (old / "a.py").write_text(SCRIPT)
    invoke("check", "--write-baseline", "base.json", ".")
    (old / "a.py").write_text(SCRIPT + LINE)
    invoke("check", "--add-ignore", "--apply", "--baseline", "base.json", ".")
    assert (old / "a.py").read_text() == SCRIPT + silenced


def test_what_cannot_be_silenced_is_named(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text("x = (\n")
    outcome = invoke("check", "--add-ignore", "--apply", ".")
    assert outcome.code == 1
    assert "Left: a.py:1:5: TL000 cannot be silenced by a comment" in outcome.err
    assert invoke("check", "--add-ignore", "missing.py").code == 2
    assert invoke("check", "--add-ignore", "--fix", ".").code == 2
    assert invoke("check", "--apply", ".").code == 2


def test_comments_for_text_from_standard_input(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SCRIPT.encode())))
    outcome = invoke("check", "--add-ignore", "--apply", "-")
    assert outcome.code == 0
    assert outcome.out == SCRIPT.replace("(True)\n", "(True)  # torchlint: ignore[TL601]\n")
