"""Fixes that are right, wrong and slow, and what bench says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import evidence
from torchlint.cli.bench import command
from torchlint.harness.bench import Bench, CaseResult
from torchlint.harness.case import Case, cases, control, parse_case
from torchlint.harness.errors import HarnessError
from torchlint.harness.measure import Plan
from torchlint.harness.program import BY_FIXER, FixedProgram, fixed_program, torchlint_fixer
from torchlint.harness.verdict import Verdict

QUICK = Plan(rounds=5, budget=6, block=0.004, warm=0.03, most_pairs=6)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench.prepare("cpu", 1, QUICK, tmp_path_factory.mktemp("bench"))


def case_of(code: str) -> Case:
    return next(case for case in cases() if case.code == code)


def run(bench: Bench, case: Case, text: str) -> CaseResult:
    return bench.run(case, FixedProgram(text, BY_FIXER))


def test_a_good_fix_is_confirmed(bench: Bench) -> None:
    case = case_of("TL601")
    fixed = fixed_program(case, torchlint_fixer)
    assert fixed is not None
    assert fixed.origin == BY_FIXER
    result = bench.run(case, fixed)
    assert (result.verdict, result.reason) == (Verdict.CONFIRMED, "")
    assert result.interval is not None
    assert result.interval.low > 1.2
    assert result.equality is not None
    assert result.equality.detail == "bitwise equal over 3 steps"


@pytest.mark.parametrize(
    ("original", "broken", "detail"),
    [
        ("    state.optimizer.step()\n", "", "logits differs from step 2 on"),
        ("lr=1e-3", "lr=2e-3", "logits differs from step 2 on"),
        ('{"loss": loss, ', "{", "other outputs in step 1"),
        ("    loss.backward()\n", "    loss.backwards()\n", "the fixed program fails: AttributeError"),
    ],
    ids=["a step less", "another rate", "an output less", "an error"],
)
def test_a_fix_that_computes_something_else_is_different(bench: Bench, original: str, broken: str, detail: str) -> None:
    case = case_of("TL601")
    text = torchlint_fixer(case.source, case.code).replace(original, broken)
    result = run(bench, case, text)
    assert result.verdict is Verdict.DIFFERENT
    assert detail in result.reason.replace("loss differs", "logits differs")
    assert result.interval is None


def test_a_fix_that_cannot_run_on_this_device_is_not_called_different(bench: Bench) -> None:
    case = case_of("TL218")
    fixed = fixed_program(case, torchlint_fixer)
    assert fixed is not None
    result = bench.run(case, fixed)
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert "pinned memory" in result.reason


def test_a_fix_that_is_wrong_within_a_tolerance_only_passes_there(bench: Bench) -> None:
    case = case_of("TL301")
    text = torchlint_fixer(case.source, case.code).replace("lr=1e-2", "lr=1.01e-2")
    assert run(bench, case, text).verdict is Verdict.DIFFERENT


def test_a_fix_that_changes_the_distribution_is_different(bench: Bench) -> None:
    case = case_of("TL201")
    fixed = torchlint_fixer(case.source, case.code)
    broken = fixed.replace("* noise * kept", "* noise * kept + 0.1").replace(
        '"noise": noise', '"noise": 0.1 / 32 + noise'
    )
    assert broken != fixed
    result = run(bench, case, broken)
    assert (result.verdict, "distribution differs" in result.reason) == (Verdict.DIFFERENT, True)


def test_a_fix_that_costs_time_is_slower(bench: Bench) -> None:
    case = control()
    text = case.source.replace(
        "    loss.backward()\n", "    loss.backward(retain_graph=True)\n" + "    loss.backward()\n" * 0
    )
    slow = text.replace("    state.optimizer.step()\n", "    sum(range(40000))\n    state.optimizer.step()\n")
    result = run(bench, case, slow)
    assert result.verdict is Verdict.SLOWER
    assert result.interval is not None
    assert result.interval.high < 1


def test_what_the_cpu_cannot_show_has_no_number(bench: Bench) -> None:
    case = case_of("TL605")
    result = bench.run(case, fixed_program(case, lambda source, code: source))
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert result.reason == "cuDNN runs on CUDA devices only, and this is cpu"
    assert (result.interval, result.original, result.fixed) == (None, None, None)
    assert result.equality is not None
    assert result.equality.holds


def test_a_program_that_fails_by_itself_is_not_blamed_on_the_fix(bench: Bench) -> None:
    source = (
        '"""A program."""\nCASE = {"code": "TL999", "equal": "bitwise"}\n\n\ndef setup(device):\n    return 1 / 0\n'
    )
    result = run(bench, parse_case("some_rule", source, None), source + "\n")
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert result.reason == "the original program fails: ZeroDivisionError: division by zero"


def test_a_fixer_that_changes_nothing_is_told(bench: Bench) -> None:
    result = bench.run(case_of("TL601"), fixed_program(case_of("TL601"), lambda source, code: source))
    assert result.verdict is Verdict.NOT_MEASURABLE
    assert "torchlint has no fix for TL601" in result.reason


@pytest.mark.parametrize("code", ["TL101", "TL201", "TL202", "TL301", "TL401", "TL601"])
def test_the_fixer_fixes_its_own_case(code: str) -> None:
    fixed = fixed_program(case_of(code), torchlint_fixer)
    assert fixed is not None
    assert fixed.origin == BY_FIXER


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="there is no device 'cuda:9'"):
        Bench.prepare("cuda:9", 1, QUICK, tmp_path)


def test_the_command_writes_evidence_and_resumes(tmp_path: Path) -> None:
    path, plot = tmp_path / "out.json", tmp_path / "out.svg"
    arguments = ["TL605", "TL601", "--rounds=5", "--budget=2", f"--json={path}", f"--plot={plot}"]
    first = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert (first.exception, first.return_value) == (None, 0)
    document = json.loads(path.read_text())
    assert [m.code for m in evidence.parse(document).measurements] == ["TL601", "TL605"]
    assert plot.read_text().startswith("<svg")
    again = CliRunner().invoke(command, [*arguments, "--resume"], standalone_mode=False)
    assert (again.exception, again.return_value) == (None, 0)
    assert json.loads(path.read_text()) == document
    other = CliRunner().invoke(command, ["TL606", *arguments[2:], "--resume"], standalone_mode=False)
    assert (other.exception, other.return_value) == (None, 0)
    cases = json.loads(path.read_text())["cases"]
    assert [case["code"] for case in cases] == ["TL601", "TL605", "TL606"]
    assert cases[:2] == document["cases"]


def test_the_command_ends_with_1_for_a_program_that_is_different() -> None:
    def broken(source: str, code: str) -> str:
        return source.replace("optimizer.step()", "optimizer.zero_grad()")

    arguments = ["TL601", "--rounds=5", "--budget=2"]
    result = CliRunner().invoke(command, arguments, obj={"fixer": broken}, standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 1)
    assert "different" in result.output


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    def interrupting(source: str, code: str) -> str:
        if code == "TL605":
            raise KeyboardInterrupt
        return source.replace("torch.autograd.set_detect_anomaly(True)\n", "")

    path = tmp_path / "out.json"
    arguments = ["TL601", "TL605", "--rounds=5", "--budget=2", f"--json={path}"]
    result = CliRunner().invoke(command, arguments, obj={"fixer": interrupting}, standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 130)
    assert [case["code"] for case in json.loads(path.read_text())["cases"]] == ["TL601"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say which cases"),
        (["TL999"], "no case for TL999"),
        (["TL601", "--plot=x.png"], ".svg or .html"),
        (["TL601", "--resume"], "--resume needs the file of --json"),
        (["TL601", "--rounds=2"], "2 is not in the range"),
    ],
)
def test_mistakes_are_told(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_the_self_check_counts_intervals_that_contain_one(tmp_path: Path) -> None:
    path = tmp_path / "check.json"
    result = CliRunner().invoke(command, ["--self-check", "2", f"--json={path}"], standalone_mode=False)
    assert result.exception is None
    assert "2 comparisons of a program with itself" in result.output
    found = json.loads(path.read_text())
    assert (found["comparisons"], found["passed"]) == (2, result.return_value == 0)
