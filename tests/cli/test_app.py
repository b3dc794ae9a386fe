"""The group of commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SAFE, Invoke
from torchlint.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_version_needs_no_import_of_libcst_or_click() -> None:
    program = (
        "import sys\n"
        "from torchlint.cli import run\n"
        "run(['--version'])\n"
        "print(sorted({'libcst', 'click', 'rich', 'pygls', 'lsprotocol'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == f"torchlint {__version__}\n[]\n"


def test_a_path_in_place_of_a_command(project: Path, invoke: Invoke) -> None:
    for arguments in (
        [
            ".",
        ],
        ["train.py"],
        ["src/train.py"],
    ):
        outcome = invoke(*arguments)
        assert outcome.code == 2
        assert f"did you mean `torchlint check {arguments[0]}`?" in outcome.err
        assert outcome.err.count("\n") == 1


def test_a_misspelt_command(invoke: Invoke) -> None:
    outcome = invoke("chekc")
    assert outcome.code == 2
    assert "did you mean `torchlint check`?" in outcome.err


@pytest.mark.parametrize(
    ("name", "meant"), [("explain", "rules"), ("rule", "rules"), ("lint", "check"), ("format", "fix")]
)
def test_the_commands_of_other_tools(invoke: Invoke, name: str, meant: str) -> None:
    outcome = invoke(name)
    assert outcome.code == 2
    assert f"did you mean `torchlint {meant}`?" in outcome.err


def test_a_missing_argument_is_one_line(invoke: Invoke) -> None:
    outcome = invoke("completion")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def test_help(invoke: Invoke) -> None:
    assert invoke().code == 0
    outcome = invoke("--help")
    assert "check" in outcome.out
    assert "rules" in outcome.out
    assert invoke("check", "--help").code == 0


def test_rules_are_listed(invoke: Invoke) -> None:
    outcome = invoke("rules")
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].split()[:2] == ["code", "name"]
    assert any(line.startswith("TL601  anomaly-detection-left-on") for line in outcome.out.splitlines())


def test_a_rule_is_explained_by_code_and_name(invoke: Invoke) -> None:
    by_code = invoke("rules", "TL601")
    assert by_code.out == invoke("rules", "anomaly-detection-left-on").out
    assert by_code.out.startswith("# TL601 anomaly-detection-left-on\n")
    assert "\x1b[" in invoke("rules", "TL601", "--color", "always").out


def test_an_unknown_rule_is_one_line(invoke: Invoke) -> None:
    outcome = invoke("rules", "TL602x")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def test_rules_as_json(invoke: Invoke) -> None:
    listed = json.loads(invoke("rules", "--output-format", "json").out)
    assert "TL601" in {rule["code"] for rule in listed}
    assert json.loads(invoke("rules", "TL601", "--output-format", "json").out)["name"] == "anomaly-detection-left-on"


def test_an_internal_error_is_one_line(project: Path, invoke: Invoke, monkeypatch: object) -> None:
    import torchlint.cli.session as session

    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(session, "run_many", broken)  # type: ignore[attr-defined]
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check")
    assert outcome.code == 2
    assert outcome.err == "error: internal error: RuntimeError: first (run again with --verbose for the traceback)\n"


def test_an_interrupt_exits_with_130(project: Path, invoke: Invoke, monkeypatch: object) -> None:
    import torchlint.cli.session as session

    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run_many", interrupted)  # type: ignore[attr-defined]
    (project / "a.py").write_text(SAFE)
    assert invoke("check").code == 130


SLOW = """
import sys, time
from torchlint.cli import main
from torchlint.engine.worker import Worker
from torchlint.syntax.parse import run_with_large_stack

def check(self, task):
    print("started", flush=True)
    return run_with_large_stack(lambda: time.sleep(60))

Worker.check = check
main(["check", "--jobs", sys.argv[1], "a.py", "b.py"])
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_a_long_check_at_once(project: Path, jobs: str) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(SAFE)
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip() == b"interrupted"
    assert time.monotonic() - start < 10
