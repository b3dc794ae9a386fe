"""The search for programs that a safe fix changes finds what is wrong, and nothing in the fixes that there are."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refute.choices import Choices
from tests.refute.machine import run
from tests.refute.observe import Kind, differences
from tests.refute.run import INCOMPLETE, OK, ROOT, main, note, search_of
from tests.refute.search import Program, RefutedError, Search, Tally, judge, missing, run_search
from tests.torch.stand_in import FAKE_CUDA, META, VALUES
from torchlint.dev.certificates import has_safe_fix, read, search_path
from torchlint.registry import rules
from torchlint.rule import Rule

WRITTEN = [rule for rule in rules() if (ROOT / search_path(rule)).exists()]
SEARCHED = [rule for rule in WRITTEN if not missing(search_of(rule))]
"""The end of the output names the others."""

# What is right, and what a wrong fix would make of it, for everything that a safe fix promises.
PLANTED = {
    Kind.VALUES: ("x = torch.ones(3)", "x = torch.ones(3) * 1.0000001"),
    Kind.DTYPE: ("x = torch.ones(3)", "x = torch.ones(3).double()"),
    Kind.SHAPE: ("x = torch.ones(3, 1)", "x = torch.ones(1, 3)"),
    Kind.STRIDE: ("x = torch.ones(3, 2)", "x = torch.ones(2, 3).t()"),
    Kind.DEVICE: ("x = torch.ones(3).cuda(1)", "x = torch.ones(3).cuda()"),
    Kind.LEAF: ("x = torch.ones(3)", "x = torch.ones(3).requires_grad_()"),
    Kind.GRADIENT: (
        "w = torch.ones(3, requires_grad=True); w.sum().backward()",
        "w = torch.ones(3, requires_grad=True); w.sum()",
    ),
    Kind.SHARING: ("a = np.ones(3); x = torch.tensor(a)", "a = np.ones(3); x = torch.as_tensor(a)"),
    Kind.NAMES: ("state = {'weight': 1}", "state = {'bias': 1}"),
    Kind.GENERATORS: ("x = torch.ones(3)", "torch.rand(1); x = torch.ones(3)"),
    Kind.SWITCHES: ("x = 1", "x = 1; torch.set_default_dtype(torch.float64)"),
    Kind.OUTPUT: ("print(1)", "print(1.0)"),
    Kind.ERROR: ("x = [1][0]", "x = [1][1]"),
}
HEAD = "import numpy as np\nimport torch\n"


def planted(before: str, after: str) -> Search:
    """Return a search whose programs hold a line, to be fixed by writing another one."""
    return Search("TL201", lambda choices: Program(f"{HEAD}n = {choices.of(1, 2, 3, 4)}\n{before}\n# {after}\n"))


def wrong_fixer(rule: str, program: Program) -> str:
    """Return the program with the line that the comment names."""
    *head, _, comment = program.text.splitlines()
    return "\n".join([*head, comment.removeprefix("# ")]) + "\n"


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.value)
def test_a_wrong_fix_is_refuted(kind: Kind) -> None:
    tally = run_search(planted(*PLANTED[kind]), wanted=4, start=0, fixer=wrong_fixer)
    assert tally.refutations
    assert f"  {kind.value}: " in tally.refutations[0]
    assert "n = 1\n" in tally.refutations[0], "the smallest program is shown"


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.value)
def test_a_right_fix_is_not(kind: Kind) -> None:
    before, _ = PLANTED[kind]
    tally = run_search(planted(before, f"{before}; pass"), wanted=4, start=0, fixer=wrong_fixer)
    assert not tally.refutations
    assert tally.judged == 4


def test_everything_that_is_promised_is_planted() -> None:
    assert set(PLANTED) == set(Kind)


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("x = torch.ones(3)\ny = x[1:]\n", VALUES),
        ("x = torch.ones(3)\ny = x.cuda()\n", META),
        ("x = torch.ones(3)\ny = x.numpy()\n", VALUES),
    ],
    ids=["tensors", "moved tensors", "arrays"],
)
def test_sharing_is_seen(program: str, place: object) -> None:
    apart = program.replace("x[1:]", "x[1:].clone()").replace("x.cuda()", "x").replace("x.numpy()", "x.numpy().copy()")
    found = differences(run(HEAD + program, place), run(HEAD + apart, place))
    assert Kind.SHARING in {difference.kind for difference in found}


def test_a_program_that_is_never_the_same_twice_is_not_judged() -> None:
    search, tally = planted("import time; x = time.perf_counter()", "x = 1"), Tally("TL201")
    judge(search, search.program(Choices(lambda strategy: 0)), wrong_fixer, tally, set())
    assert (tally.fixed, tally.judged) == (1, 0)


def test_a_program_that_fails_is_not_judged() -> None:
    search, tally = planted("1 / 0", "x = 1"), Tally("TL201")
    judge(search, search.program(Choices(lambda strategy: 0)), wrong_fixer, tally, set())
    assert (tally.fixed, tally.judged) == (1, 0)


def test_what_the_fix_says_it_changes_does_not_count() -> None:
    search, tally = planted("x = 1", "x = 2"), Tally("TL201")
    program = search.program(Choices(lambda strategy: 0))
    with pytest.raises(RefutedError):
        judge(search, program, wrong_fixer, tally, set())
    allowed = Search(search.rule, search.program, is_the_fix=lambda difference: difference.kind is Kind.VALUES)
    judge(allowed, program, wrong_fixer, tally, set())


def test_programs_leave_everything_as_it_was() -> None:
    before = [*warnings.filters]
    run(
        f"{HEAD}import os, warnings\nos.environ['LEFT'] = '1'\ntorch.set_default_device('meta')\n"
        "torch.backends.cudnn.benchmark = True\nwarnings.simplefilter('error')\ntorch.set_grad_enabled(False)\n",
        VALUES,
    )
    seen = run("import os\nleft = os.environ.get('LEFT')\n", VALUES)
    assert seen.facts["left"] == ("NoneType", None)
    assert seen.switches["default device"] == "None"
    assert seen.switches["cudnn"][0] is False
    assert seen.switches["grad mode"] is True
    assert warnings.filters == before


def test_cuda_is_played() -> None:
    assert run(HEAD + "x = torch.ones(3).cuda(1)\n", FAKE_CUDA).facts["x"].device == "cuda:1"


def test_the_program_says_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rule", "TL606", "--programs", "3", "--seed", "5", "--jobs", "1"]) == OK
    assert re.match(r"TL606: \d+ programs, \d+% of them with a safe fix, \d+ of those run", capsys.readouterr().out)


def test_a_search_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tests.refute.run.missing", lambda search: "torchvision")
    assert main(["--rule", "TL606", "--programs", "3", "--jobs", "1"]) == INCOMPLETE
    assert capsys.readouterr().out == "TL606: NOT RUN: its programs need torchvision, which is not installed\n"


def test_only_what_was_not_refuted_gets_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "tests/refute").mkdir(parents=True)
    enough = Tally("TL201", tried=20, fixed=15, judged=10, places=Counter(values=10))
    few, past = replace(enough, judged=9), replace(enough, tried=100)
    refuted = replace(enough, refutations=["x"])
    for tally, expected in ((enough, {"TL201"}), (few, set()), (enough, {"TL201"}), (past, set()), (refuted, set())):
        note(tmp_path, tally, "0123", 10, 0)
        assert set(read(tmp_path)) == expected


@pytest.mark.parametrize("rule", SEARCHED, ids=lambda rule: rule.name)
def test_a_few_programs_refute_nothing(rule: Rule) -> None:
    tally = run_search(search_of(rule), wanted=5, start=1)
    assert not tally.refutations, tally.refutations[0]
    assert tally.judged >= 5


@pytest.mark.parametrize("rule", WRITTEN, ids=lambda rule: rule.name)
def test_a_search_says_what_it_is_about(rule: Rule) -> None:
    search = search_of(rule)
    assert has_safe_fix(rule)
    assert search.rule == rule.code
    assert inspect.getmodule(search.program).__doc__
