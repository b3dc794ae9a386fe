"""Each check of the corpus program can fail, and none does on a sound fixer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import run
from tests.corpus.judge import Check, Verdict, every_fix, judge, pyflakes, wrongs
from tests.corpus.run import INCOMPLETE, OK, VIOLATIONS, judged_tree, main, report
from torchlint.engine.fix import FixResult
from torchlint.source import Source

PROGRAM = """\
import os
import torch

device = torch.device("cuda")

def start():
    first = torch.zeros(3).to(device)
    second = torch.ones(3).to(device)
    return first, second
"""
FIXED = PROGRAM.replace("zeros(3).to(device)", "zeros(3, device=device)").replace(
    "ones(3).to(device)", "ones(3, device=device)"
)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def judged(path: Path, change: Callable[[str], str] = lambda text: text) -> Verdict:
    """Return the verdict where a fixer does its work, and then changes the text once more."""

    def fixer(source: Source, check: Check) -> FixResult:
        fixed = every_fix(source, check)
        return replace(fixed, text=change(fixed.text))

    return judge(str(path), deadline=time.monotonic() + 60, fixer=fixer)


def test_sound_fixer_has_no_violations(program: Path) -> None:
    verdict = judged(program)
    assert verdict.violations == []
    assert verdict.findings == {"TL201": 2}
    assert verdict.applied == {("TL201", "safe"): 2}
    assert (verdict.alone, verdict.not_alone) == (2, 0)
    assert verdict.after == FIXED


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        (lambda text: text.replace("return first", "return (first"), "does not parse"),
        (lambda text: text.replace("import torch\n", ""), "pyflakes says \"undefined name 'torch'\""),
        (lambda text: text.replace("import os\n", "import os, sys\n"), "pyflakes says \"'sys' imported but unused\""),
        (lambda text: text.replace("    return", "return_ = 1 #"), "all fixes: pyflakes says"),
        (lambda text: text.replace("    return", "return"), "code outside the edits means something else"),
        (lambda text: text + "#", "a second run still does"),
    ],
    ids=["parse", "undefined", "unused", "names", "meaning", "again"],
)
def test_each_check_can_fail(program: Path, change: Callable[[str], str], violation: str) -> None:
    assert any(violation in one for one in judged(program, change).violations)


def test_fix_that_fails_only_alone_is_seen(program: Path) -> None:
    verdict = judged(program, lambda text: text.replace("import torch\n", "") if ".to(" in text else text)
    assert verdict.violations
    assert all(" alone: pyflakes says" in one for one in verdict.violations)


def test_exception_is_a_violation(program: Path) -> None:
    def change(text: str) -> str:
        raise KeyError(text[:6])

    assert judged(program, change).violations == ["KeyError: 'import'"]


def test_error_of_a_rule_is_a_violation(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("torchlint.engine.suspects.run_rule", fail)
    assert any("ValueError: odd" in one for one in judged(program).violations)


def test_time_that_is_over_leaves_fixes_untried_and_says_so(program: Path) -> None:
    verdict = judge(str(program), deadline=time.monotonic() - 1)
    assert (verdict.alone, verdict.not_alone) == (0, 2)


def test_command_line_that_does_something_else_is_seen(program: Path) -> None:
    other = Verdict(str(program), after=FIXED.replace("first", "third"))
    wrongs = run._by_command_line(program.parent, [other], 1)
    assert wrongs == ["program.py: the command makes something else of it"]


def test_tree_is_counted(program: Path) -> None:
    (program.parent / "broken.py").write_text("import torch\ndef (:\n", encoding="utf-8")
    (program.parent / "latin.py").write_bytes(b"# \xe4\n")
    tree = judged_tree("local", program.parent, jobs=1, seconds=60)
    assert tree.all_violations() == [
        "local: `check` ends with 2",
        "local: `fix` ends with 2",
        "local: `fix` ends with 2",
    ]
    assert program.read_text(encoding="utf-8") == FIXED
    told = report([tree])
    assert "TL201              2       2       0        0        2        0" in told
    assert "1 files could not be read" in told


def test_exit_codes(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    words = ["--folder", str(program.parent), "--jobs", "1"]
    assert main(words) == OK
    assert "0 violations in 1 files of 1 trees" in capsys.readouterr().out
    monkeypatch.setattr(run, "_by_command_line", lambda *given: ["odd"])
    assert main(words) == VIOLATIONS
    assert f"{program.parent}: odd" in capsys.readouterr().out
    assert main(["nonsense"]) == INCOMPLETE
    assert "not pinned: nonsense" in capsys.readouterr().err


def test_package_that_cannot_be_downloaded_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert main(["timm", "--cache", str(tmp_path)]) == INCOMPLETE
    assert "NOT RUN, 1 of the packages: timm==" in capsys.readouterr().out


def test_imports_that_another_branch_could_replace_may_be_left_without_use() -> None:
    assert pyflakes("import a\n") == {"'a' imported but unused": 1}
    assert pyflakes("def f():\n    import a\n    g()\n") == {"'a' imported but unused": 1, "undefined name 'g'": 1}
    assert pyflakes("try:\n    import a\nexcept ImportError:\n    a = None\n") == {}
    assert pyflakes("if flag:\n    import a\n") == {"undefined name 'flag'": 1}
    assert "imported but unused" not in str(pyflakes("from a import *\n"))
    assert pyflakes("import a\nx = 'print(a.b)'\n") == pyflakes("import a\nexec(open('x').read())\n") == {}


def test_what_was_wrong_already_is_nothing_new() -> None:
    assert pyflakes("x\nx\n") == {"undefined name 'x'": 1}
    assert pyflakes("from a._b import c\n") == pyflakes("from a import c\n") == pyflakes("import d as c\n")


def test_an_import_that_nothing_used_before_may_get_another_name() -> None:
    assert list(wrongs("from a import b\nc = 1\n", "from a import d\nc = 1\n")) == []
    assert list(wrongs("from a import b\nb(1)\n", "from a import b\nc(1)\n"))
