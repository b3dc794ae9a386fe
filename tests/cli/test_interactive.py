"""``torchlint fix --interactive`` on a pseudo-terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import FIXED, SAFE, Invoke
from tests.terminal import Screen, on_terminal

TWO = """\
import torch

torch.autograd.set_detect_anomaly(True)
loader = torch.utils.data.DataLoader(dataset)
other = torch.utils.data.DataLoader(dataset)
"""
ONLY = ("--select", "TL101,TL601", "--color", "never")
UNSAFE = (*ONLY, "--unsafe-fixes")
INTERRUPT, END_OF_INPUT = "\x03", "\x04"


def ask(folder: Path, keys: str, *options: str) -> Screen:
    """Answer the questions of ``fix --interactive`` with these keys."""
    return on_terminal(["fix", "--interactive", *options], folder, keys=keys)


def test_each_fix_is_shown_with_its_diff_and_applied_if_wanted(project: Path) -> None:
    (project / "a.py").write_text(TWO)
    screen = ask(project, "yny", *UNSAFE)
    assert screen.code == 1
    assert screen.text.count("Apply this fix of") == 3
    assert "a.py:3:1: TL601 anomaly-detection-left-on  [1 of 3]" in screen.text
    assert "\n-torch.autograd.set_detect_anomaly(True)\n" in screen.text
    assert "\n+other = torch.utils.data.DataLoader(dataset, num_workers=4)\n" in screen.text
    assert "Applied 2 fixes in 1 file:" in screen.text
    assert "1  TL101 was declined" in screen.text
    assert (project / "a.py").read_text() == (
        "import torch\n\nloader = torch.utils.data.DataLoader(dataset)\n"
        "other = torch.utils.data.DataLoader(dataset, num_workers=4)\n"
    )


def test_all_of_a_rule_holds_in_the_other_files_too(project: Path) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(TWO)
    screen = ask(project, "dan", *UNSAFE)
    assert screen.text.count("Apply this fix of") == 2
    assert screen.text.count("Applied, as all of this rule.") == 3
    for name in ("a.py", "b.py"):
        text = (project / name).read_text()
        assert text.count("num_workers=4") == 2
        assert "set_detect_anomaly" in text


def test_help_is_shown_and_asked_again(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    screen = ask(project, "?y", *ONLY)
    assert screen.code == 0
    assert "  q  quit; what was applied stays applied\n" in screen.text
    assert (project / "a.py").read_text() == FIXED


@pytest.mark.parametrize("key", ["q", END_OF_INPUT])
def test_quitting_keeps_what_was_accepted_and_asks_no_more(project: Path, key: str) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(TWO)
    screen = ask(project, f"y{key}", *UNSAFE)
    assert screen.code == 1
    assert "set_detect_anomaly" not in (project / "a.py").read_text()
    assert (project / "b.py").read_text() == TWO
    assert "4  TL101 was left for a later run" in screen.text


def test_an_interrupt_loses_nothing_that_was_accepted(project: Path) -> None:
    (project / "a.py").write_text(TWO)
    screen = ask(project, f"y{INTERRUPT}", *UNSAFE)
    assert screen.code == 130
    assert "Applied 1 fix in 1 file:" in screen.text
    assert screen.text.rstrip().endswith("interrupted; what was accepted is written")
    assert "set_detect_anomaly" not in (project / "a.py").read_text()
    assert [path.name for path in project.glob("*.py*")] == ["a.py"]


def test_without_unsafe_fixes_only_safe_ones_are_offered(project: Path) -> None:
    (project / "a.py").write_text(TWO)
    screen = ask(project, "y", *ONLY)
    assert screen.text.count("Apply this fix of") == 1
    assert "2  TL101 needs --unsafe-fixes" in screen.text


def test_an_import_that_is_left_without_use_goes_with_the_fix_that_is_shown(project: Path) -> None:
    text = "import torch\nfrom torch.autograd import set_detect_anomaly as f\n\nf(True)\nx = torch.zeros(3)\n"
    (project / "a.py").write_text(text)
    screen = ask(project, "y", *ONLY)
    assert "\n-from torch.autograd import set_detect_anomaly as f\n" in screen.text
    assert (project / "a.py").read_text() == FIXED


def test_suppressed_and_baselined_findings_are_not_offered(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "b.py").write_text(SAFE.replace("(True)", "(True)  # torchlint: ignore[TL601]"))
    invoke("check", "--write-baseline", "known.json", ".")
    (project / "c.py").write_text(SAFE)
    screen = ask(project, "y", "--baseline", "known.json", *ONLY)
    assert screen.text.count("Apply this fix of") == 1
    assert (project / "a.py").read_text() == SAFE
    assert (project / "c.py").read_text() == FIXED


def test_only_lines_that_changed_are_offered(project: Path) -> None:
    (project / "a.py").write_text(TWO)
    for arguments in (
        ["init", "-q"],
        ["add", "a.py"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
    ):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    (project / "a.py").write_text(TWO + "third = torch.utils.data.DataLoader(dataset)\n")
    screen = ask(project, "y", "--since", "HEAD", *UNSAFE)
    assert screen.text.count("Apply this fix of") == 1
    assert (project / "a.py").read_text() == TWO + "third = torch.utils.data.DataLoader(dataset, num_workers=4)\n"


def test_notebooks(project: Path) -> None:
    lines = ["import torch\n", "torch.autograd.set_detect_anomaly(True)\n", "x = torch.zeros(3)"]
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": lines}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "a.ipynb").write_text(json.dumps(book, indent=1))
    screen = ask(project, "y", *ONLY)
    assert "a.ipynb:cell 1:2:1: TL601" in screen.text
    cell["source"] = [lines[0], lines[2]]
    assert (project / "a.ipynb").read_text() == json.dumps(book, indent=1)


def test_a_file_that_cannot_be_written_is_told_and_the_others_go_on(project: Path) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(SAFE)
    (project / "a.py").chmod(0o444)
    screen = ask(project, "yy", *ONLY)
    assert screen.code == 2
    assert "a.py: not written: the file is read-only" in screen.text
    assert "Applied 1 fix in 1 file:" in screen.text
    assert (project / "b.py").read_text() == FIXED


def test_nothing_to_do(project: Path) -> None:
    (project / "a.py").write_text(FIXED)
    screen = ask(project, "", *ONLY)
    assert screen.code == 0
    assert screen.text.endswith("Nothing was fixed.\n")  # behind a progress bar, if it takes long
    assert "?" not in screen.text.replace("\x1b[?25", "")


def test_without_a_terminal_it_says_so(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("fix", "--interactive", ".")
    assert outcome.code == 2
    assert outcome.err.startswith("error: --interactive asks on a terminal")
    assert len(outcome.err.splitlines()) == 1
    assert (project / "a.py").read_text() == SAFE
