from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchlint.cli.verify import command

REPOSITORY = Path(__file__).parents[3]
PYTHON = sys.executable


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)


def program_of(project: Path, text: str) -> None:
    (project / "train.py").write_text(text)


def snapshot(project: Path) -> dict[str, bytes]:
    return {str(path.relative_to(project)): path.read_bytes() for path in project.rglob("*") if path.is_file()}


def leftovers() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("torchlint-verify-*"))


def test_a_fix_that_helps_is_equal_and_faster_and_nothing_is_written(project: Path) -> None:
    before, left = snapshot(project), leftovers()
    result = verify("train.py", "--runs=5", r"--metric=loss: (\S+)", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 0), result.output
    assert "2 fixes in 1 file" in result.output
    assert "equality  equal: exit status and metrics agree" in result.output
    assert r"loss: (\S+): 0.25 against 0.25" in result.output
    assert "speedup" in result.output
    assert snapshot(project) == before
    assert leftovers() == left


def test_ablation_says_what_each_fix_is_worth(project: Path) -> None:
    result = verify("train.py", "--runs=2", "--ablate", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 0), result.output
    lines = result.output.splitlines()
    worth = lines[lines.index("worth of each fix: all fixes against all but this one") + 1 :]
    assert worth[0].startswith("  train.py:3  TL601 anomaly-detection-left-on")
    assert float(worth[0].split()[3].rstrip("x")) > 1.5
    assert "train.py:4  TL201 create-then-move" in worth[1]


def test_apply_writes_what_was_verified(project: Path) -> None:
    result = verify("train.py", "--runs=1", "--apply", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 0), result.output
    text = (project / "train.py").read_text()
    assert "set_detect_anomaly" not in text
    assert 'torch.zeros(2, device="cuda")' in text


def test_the_fix_that_breaks_the_program_is_found_and_nothing_is_applied(project: Path) -> None:
    before = snapshot(project)
    result = verify("train.py", "--runs=1", "--apply", "--env=NO_DEVICE=1", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 1), result.output
    assert "DIFFERENT: the fixed program fails: exit status 1" in result.output
    assert "to blame:\n  train.py:4  TL201 create-then-move" in result.output
    assert "RuntimeError: no kernel for cuda" in result.output
    assert "nothing was applied" in result.output
    assert snapshot(project) == before


def test_the_fix_that_moves_a_metric_is_found(project: Path) -> None:
    program_of(project, (project / "train.py").read_text().replace('"loss: 0.25"', '"loss:", 1 + torch.autograd.slow'))
    result = verify("train.py", "--runs=1", r"--metric=loss: (\S+)", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 1), result.output
    assert r"DIFFERENT: loss: (\S+): 2 against 1" in result.output
    assert "to blame:\n  train.py:3  TL601" in result.output
    within = verify("train.py", "--runs=1", "--tolerance=0.6", r"--metric=loss: (\S+)", "--", PYTHON, "train.py")
    assert within.return_value == 0, within.output


def test_a_fix_that_costs_time_is_not_applied(project: Path) -> None:
    text = (
        (project / "torch" / "__init__.py")
        .read_text()
        .replace("0.2 if autograd.slow else 0.02", "0.02 if autograd.slow else 0.4")
    )
    (project / "torch" / "__init__.py").write_text(text)
    before = snapshot(project)
    result = verify("train.py", "--runs=5", "--apply", "--select=TL601", "--", PYTHON, "train.py")
    assert (result.exception, result.return_value) == (None, 1), result.output
    assert "verdict   slower" in result.output
    assert snapshot(project) == before


def test_a_program_that_fails_without_any_fix_is_an_error(project: Path) -> None:
    program_of(project, (project / "train.py").read_text() + "open('data/set.txt')\n")
    result = verify("train.py", "--", PYTHON, "train.py")
    assert result.return_value == 2
    assert "fails before any fix: exit status 1" in result.output.replace("\n", " ")
    assert "--link links to it" in result.output.replace("\n", " ")


def test_ignored_data_can_be_included_or_linked(project: Path) -> None:
    (project / "data").mkdir()
    (project / "data" / "set.txt").write_text("1")
    program_of(project, (project / "train.py").read_text() + "print(open('data/set.txt').read())\n")
    for option in ("--include", "--link"):
        result = verify("train.py", "--runs=1", f"{option}=data", "--", PYTHON, "train.py")
        assert result.return_value == 0, result.output


def test_what_a_run_writes_is_gone_before_the_next(project: Path) -> None:
    program_of(project, (project / "train.py").read_text() + "open('best.ckpt', 'x')\n")
    result = verify("train.py", "--runs=2", "--", PYTHON, "train.py")
    assert result.return_value == 0, result.output
    assert not (project / "best.ckpt").exists()


def test_a_program_that_takes_too_long_is_given_up(project: Path) -> None:
    program_of(project, (project / "train.py").read_text() + "import time\ntime.sleep(60)\n")
    result = verify("train.py", "--timeout=1", "--", PYTHON, "train.py")
    assert result.return_value == 2
    assert "timed out after 1 s" in result.output


def test_output_that_differs_in_numbers_only_is_equal(project: Path) -> None:
    program_of(project, (project / "train.py").read_text() + "import time\nprint('took', time.time())\n")
    result = verify("train.py", "--runs=1", "--", PYTHON, "train.py")
    assert result.return_value == 0, result.output
    assert "agree but for numbers" in result.output


def test_warnings_are_not_what_a_program_says(project: Path) -> None:
    program_of(
        project,
        (project / "train.py").read_text()
        + "import sys\nprint('slow' if torch.autograd.slow else 'fast', file=sys.stderr)\n",
    )
    result = verify("train.py", "--runs=1", "--", PYTHON, "train.py")
    assert result.return_value == 0, result.output
    assert "output are identical" in result.output


def test_the_first_difference_of_the_output_is_shown(project: Path) -> None:
    program_of(
        project, (project / "train.py").read_text() + "print('mode:', 'slow' if torch.autograd.slow else 'fast')\n"
    )
    result = verify("train.py", "--runs=1", "--", PYTHON, "train.py")
    assert result.return_value == 1, result.output
    assert "first in row 2: `mode: slow` against `mode: fast`" in result.output
    assert "to blame:\n  train.py:3  TL601" in result.output


def test_nothing_to_fix(project: Path) -> None:
    program_of(project, "import torch\n")
    result = verify("train.py", "--", PYTHON, "train.py")
    assert result.return_value == 0
    assert "There is nothing to fix that is safe" in result.output


def test_a_report_for_a_pull_request(project: Path) -> None:
    path = project / "out.md"
    result = verify("train.py", "--runs=1", "--ablate", f"--report={path}", "--", PYTHON, "train.py")
    assert result.return_value == 0, result.output
    text = path.read_text()
    assert "It does the same as before: exit status and output are identical." in text
    assert "| `train.py:3` | TL601 anomaly-detection-left-on |" in text
    assert "-torch.autograd.set_detect_anomaly(True)" in text
    assert "torchlint verify train.py --runs=1 --ablate" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.py"], "say what to run after --"),
        (["train.py", "--metric=(", "--", "true"], "is not a regular expression"),
        (["train.py", "--metric=loss", "--", "true"], "needs a group"),
        (["train.py", "--env=X", "--", "true"], "is not NAME=VALUE"),
        (["train.py", "--", "no-such-program"], "cannot run no-such-program"),
        (["..", "--", "true"], "lies outside of the project"),
        (["nowhere.py", "--", "true"], "nowhere.py does not exist"),
        (["train.py", "--select=TL9999", "--", "true"], "TL9999"),
        (["train.py", r"--metric=accuracy (\d+)", "--", PYTHON, "train.py"], "holds no number for --metric"),
    ],
)
def test_mistakes_are_told(project: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert message in result.output.replace("\n", " ")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_killed_in_the_middle_it_leaves_no_trace(project: Path, tmp_path: Path, how: signal.Signals) -> None:
    program_of(
        project,
        (project / "train.py").read_text()
        + f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))\nimport time\ntime.sleep(60)\n",
    )
    before, left = snapshot(project), leftovers()
    arguments = [PYTHON, "-m", "torchlint", "verify", "train.py", "--", PYTHON, "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    assert len(leftovers() - left) == 1
    process.send_signal(how)
    status = process.wait(30)
    assert status == (130 if how is not signal.SIGKILL else -9)
    pid = int((tmp_path / "pid").read_text())
    while _runs(pid) or leftovers() - left:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert snapshot(project) == before


def test_interrupted_it_tells_of_the_runs_that_were_made_and_applies_nothing(project: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    program_of(
        project,
        (project / "train.py").read_text()
        + f"open({str(made)!r}, 'a').write('x')\nif len(open({str(made)!r}).read()) == 6:\n"
        + "    import time\n    time.sleep(60)\n",
    )
    before = snapshot(project)
    arguments = [PYTHON, "-m", "torchlint", "verify", "train.py", "--runs=3", "--apply", "--", PYTHON, "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not made.exists() or len(made.read_text()) < 6:  # two runs to see that it works, two of the first round
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "equality  equal" in out, errors
    assert "speedup" in out
    assert "interrupted; this is from 1 of 3 runs" in errors
    assert snapshot(project) == before


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
