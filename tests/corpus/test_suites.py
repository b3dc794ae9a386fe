"""The suites of public projects: well formed, and compared test by test."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import suites as program
from tests.corpus.suite_runs import (
    NotRun,
    Place,
    Suite,
    changed,
    counts,
    executed,
    fixed,
    missing,
    outcomes,
    passed_twice,
    places,
    taken,
)
from tests.corpus.suites import Expected, Outcome, Trial, announced, expected, main, suites, told
from tests.repository import commit, git
from torchlint.registry import rules

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.a" name="test_one[2]" time="0.1" />
<testcase classname="tests.a" name="test_two"><failure message="no">assert</failure></testcase>
<testcase classname="tests.a" name="test_three"><skipped message="no GPU" /></testcase>
<testcase classname="tests.a" name="test_four" />
<testcase classname="tests.a" name="test_four"><error message="in teardown" /></testcase>
<testcase classname="" name="tests.b"><error message="collection failure" /></testcase>
</testsuite></testsuites>
"""
CODE = """\
import torch


@torch.no_grad()
def one(x):
    with torch.no_grad():
        y = torch.zeros(
            2,
        ).cuda()
    return x + y
"""
SUITE = Suite("one", "owner/name", "0" * 40, "code", ("code", "tests"), ("tests",), (), ())
TEST = "tests.a::test_one"


def test_the_suites_are_pinned_and_what_is_expected_names_them() -> None:
    names = [suite.name for suite in suites()]
    assert len(set(names)) == len(names) >= 4
    for suite in suites():
        assert re.fullmatch("[0-9a-f]{40}", suite.commit)
        assert suite.package
        assert suite.tests
        assert all("==" in requirement for requirement in suite.requirements)
    known = {rule.code for rule in rules()}
    for entry in expected():
        assert entry.suite in names
        assert entry.rule in known
        assert entry.reason


def test_a_report_says_what_became_of_each_test() -> None:
    assert outcomes(REPORT) == {
        "tests.a::test_one[2]": "passed",
        "tests.a::test_two": "failed",
        "tests.a::test_three": "skipped",
        "tests.a::test_four": "failed",
        "::tests.b": "failed",
    }


def test_what_passed_twice_and_does_not_after_has_changed() -> None:
    first = {"a": "passed", "b": "passed", "c": "passed", "d": "failed", "e": "passed"}
    second = {"a": "passed", "b": "failed", "c": "passed", "d": "passed", "e": "passed"}
    before, after = passed_twice(first, second), {"a": "passed", "b": "failed", "c": "skipped", "d": "failed"}
    assert before == {"a", "c", "e"}
    assert changed(before, after) == {
        "c": "skipped",
        "e": "gone",
    }


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("            2,\n", "            3,\n", [range(7, 10)]),
        ("        ).cuda()\n", "            device=0,\n        )\n", [range(7, 10)]),
        ("    with torch.no_grad():\n", "    with torch.inference_mode():\n", [range(6, 7)]),
        ("@torch.no_grad()\n", "@torch.inference_mode()\n", [range(6, 11)]),
        ("    return x + y\n", "    y = y * 1\n    return x + y\n", [range(10, 11)]),
        ("import torch\n", "import torch\n", []),
    ],
)
def test_a_place_is_the_innermost_statement(old: str, new: str, wanted: list[range]) -> None:
    assert [place.rows for place in places("a.py", CODE, CODE.replace(old, new))] == wanted


def test_a_place_is_executed_where_one_of_its_rows_is() -> None:
    found = frozenset([Place("a.py", range(7, 10)), Place("a.py", range(10, 11)), Place("b.py", range(1, 2))])
    assert executed(found, {"a.py": frozenset([1, 8])}) == 1


def test_the_fixes_are_counted_as_the_command_line_tells_them() -> None:
    left = "Not fixed: 1 finding:\n     1  TL204 has no automatic fix\n"
    done = "Applied 13 fixes in 2 files:\n     1  TL201 create-then-move\n    12  TL301 zero-grad\n"
    assert counts(done + left) == {"TL201": 1, "TL301": 12}
    assert counts("Nothing was fixed.\n" + left) == {}


def test_a_tree_is_taken_and_fixed(tmp_path: Path) -> None:
    place = tmp_path / "clones" / "owner+name"
    for folder in ("code", "tests", "docs"):
        (place / folder).mkdir(parents=True)
        (place / folder / "a.py").write_text("import torch\nx = torch.zeros(2).cuda()\n")
    git(place, "init", "-q")
    commit(place)
    suite = Suite(
        "one", "owner/name", git(place, "rev-parse", "HEAD").strip(), "code", ("code", "tests"), ("tests",), (), ()
    )
    original = tmp_path / "original"
    taken(suite, tmp_path / "clones", original)
    assert sorted(path.name for path in original.iterdir()) == ["code", "tests"]
    done = fixed(original, tmp_path / "safe", "TL201", [[str(tmp_path / "safe" / "code")]])
    assert done.applied == {"TL201": 1}
    assert done.places == {Place("code/a.py", range(2, 3))}
    with pytest.raises(NotRun, match="no clone has it"):
        taken(SUITE, tmp_path / "clones", tmp_path / "other")


def test_what_is_not_installed_is_named() -> None:
    assert missing(["no-such-package==1.0", "libcst==0.0"], sys.executable)[-2:] == [
        "no-such-package==1.0",
        "libcst==0.0",
    ]


def test_an_expected_change_is_that_of_a_test_with_any_parameters() -> None:
    entry = Expected("one", TEST, "TL301", "the gradients are None")
    assert announced(SUITE, f"{TEST}[2]", [entry]) is entry
    assert announced(SUITE, TEST, [entry]) is entry
    assert announced(SUITE, f"{TEST}_more", [entry]) is None


def test_only_safe_fixes_decide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    still, worse = Outcome(Counter(TL201=2), 2, 1, {}), Outcome(Counter(TL301=1), 1, 1, {f"{TEST}[2]": "failed"})
    entry = Expected("one", TEST, "TL301", "the gradients are None")
    assert list(told(Trial(SUITE, 8, 1, still, worse), [entry])) == [
        "one (owner/name@0000000000): 8 tests pass twice, 1 do not and are not compared",
        "  safe fixes: 2 applied (TL201 2), 1 of 2 changed statements executed, 0 tests changed",
        "  all fixes: 1 applied (TL301 1), 1 of 1 changed statements executed, 1 tests changed",
        f"    failed: {TEST}[2]  expected of TL301: the gradients are None",
    ]
    monkeypatch.setattr(program, "suites", lambda: [SUITE])
    for trial, code in ((Trial(SUITE, 8, 1, still, worse), 0), (Trial(SUITE, 8, 1, worse, worse), 1)):
        monkeypatch.setattr(program, "tried", lambda *_, trial=trial: trial)
        assert main(["--checkouts", "clones"]) == code
    capsys.readouterr()


def test_what_is_not_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TORCHLINT_CHECKOUTS", raising=False)
    assert main([]) == 2
    assert "git clone https://github.com/" in capsys.readouterr().err
    monkeypatch.setattr(program, "missing", lambda *_: [])
    monkeypatch.setattr(program, "suites", lambda: [SUITE])
    assert main(["--checkouts", str(tmp_path)]) == 2
    assert "NOT RUN: one (owner/name@0000000000): no clone has it" in capsys.readouterr().out
