"""Whatever a file holds: one clear line, the right exit code, and every other file is still checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SAFE, Invoke
from torchlint.engine.plan import Task
from torchlint.report.formats import FORMATS

SYNTAX_ERRORS: dict[str, bytes] = {
    "a syntax error": b"import torch\ndef f(:\n",
    "Python 2": b'import torch\nprint "loss", 1\n',
    "2,000 nested parentheses": b"import torch\nx = " + b"(" * 2000 + b"1" + b")" * 2000 + b"\n",
    "no torch, but nested": b"x = " + b"(" * 2000 + b"1" + b")" * 2000 + b"\n",
    "a null byte": b"import torch\n\0\n",
}


@pytest.mark.parametrize("data", SYNTAX_ERRORS.values(), ids=list(SYNTAX_ERRORS))
def test_what_cannot_be_parsed_is_the_finding_TL000(project: Path, invoke: Invoke, data: bytes) -> None:
    (project / "bad.py").write_bytes(data)
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "json", ".")
    assert outcome.code == 1
    assert [entry["code"] for entry in json.loads(outcome.out)] == ["TL000", "TL601"]
    assert "Traceback" not in outcome.err


def test_a_sum_of_30_000_terms(project: Path, invoke: Invoke) -> None:
    (project / "bad.py").write_text("import torch\nx = " + " + ".join(["1"] * 30_000) + "\n")
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "concise", ".")
    assert outcome.code == 1
    assert "good.py:3:1: TL601" in outcome.out
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "line",
    [
        "x = a" + ".to('cuda')" * 1000,
        "if x == 0:\n    pass\n" + "".join(f"elif x == {i}:\n    pass\n" for i in range(1000)),
    ],
    ids=["1,000 chained calls", "1,000 elifs"],
)
def test_long_chains_are_checked(project: Path, invoke: Invoke, line: str) -> None:
    (project / "a.py").write_text(SAFE + line + "\n")
    outcome = invoke("check", "--output-format", "json", "--select", "TL601", "a.py")
    assert [entry["code"] for entry in json.loads(outcome.out)] in (["TL601"], ["TL000"])
    assert outcome.code == 1
    assert outcome.err == ""


def _undecodable(path: Path) -> None:
    path.write_bytes(b"import torch\nx = '\xff\xfe\xfa'\n")


def _unknown_cookie(path: Path) -> None:
    path.write_bytes(b"# -*- coding: klingon -*-\nimport torch\n")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _gone(path: Path) -> None:
    path.symlink_to("nowhere.py")


@pytest.mark.parametrize("make", [_undecodable, _unknown_cookie, _pipe, _gone])
def test_what_cannot_be_read_is_one_line_and_2(project: Path, invoke: Invoke, make: Callable[[Path], None]) -> None:
    make(project / "bad.py")
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "concise", "bad.py", "good.py")
    assert outcome.code == 2
    assert "good.py:3:1: TL601" in outcome.out
    assert outcome.err.count("\n") == 1
    assert "bad.py" in outcome.err


def test_a_file_that_may_not_be_read(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchlint.engine.worker as worker
    from torchlint.source import SourceError

    real = worker.read_source

    def refuse(path: str) -> object:
        if path.endswith("bad.py"):
            raise SourceError(f"{path}: permission denied")
        return real(path)

    monkeypatch.setattr(worker, "read_source", refuse)
    for name in ("bad.py", "good.py"):
        (project / name).write_text(SAFE)
    outcome = invoke("check", "--output-format", "concise", ".")
    assert outcome.code == 2
    assert "good.py:3:1: TL601" in outcome.out
    assert outcome.err.rstrip().endswith("bad.py: permission denied")


def test_a_path_that_does_not_exist(project: Path, invoke: Invoke) -> None:
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", "missing.py", "good.py")
    assert outcome.code == 2
    assert "TL601" in outcome.out
    assert "missing.py" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_folder_without_python_is_a_warning(project: Path, invoke: Invoke) -> None:
    (project / "notes.txt").write_text("x")
    outcome = invoke("check", ".")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: ")
    assert outcome.err.count("\n") == 1


def test_an_empty_file(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text("")
    assert invoke("check", "a.py").code == 0


def test_a_huge_file_is_skipped_and_counted(project: Path, invoke: Invoke) -> None:
    (project / "huge.py").write_text("import torch\n" + "x = 1\n" * 900_000)
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", ".")
    assert outcome.code == 1
    assert "Skipped 1 file: larger than 2 MB." in outcome.out


def test_a_generated_file_is_skipped_and_counted(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text("# @generated\n" + SAFE)
    outcome = invoke("check", ".")
    assert outcome.code == 0
    assert "Skipped 1 file: generated by a program." in outcome.out


def test_a_loop_of_symbolic_links(project: Path, invoke: Invoke) -> None:
    (project / "folder").mkdir()
    (project / "folder" / "loop").symlink_to(project, target_is_directory=True)
    (project / "self").symlink_to("self")
    (project / "good.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "json", ".")
    assert outcome.code == 1
    assert len(json.loads(outcome.out)) == 1


def test_a_rule_that_fails_is_named_and_costs_nothing_else(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchlint.engine.suspects as engine

    real = engine.run_rule

    def broken(rule: object, *rest: object) -> object:
        if getattr(rule, "code", "") == "TL101":
            raise RecursionError("too deep\nfor words")
        return real(rule, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "run_rule", broken)
    (project / "a.py").write_text(SAFE + "loader = torch.utils.data.DataLoader([])\n")
    outcome = invoke("check", "--output-format", "concise", "a.py")
    assert outcome.code == 2
    assert "TL601" in outcome.out
    assert outcome.err.startswith("error: a.py: internal error in rule TL101 ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_that_is_no_unicode_is_shown_in_every_format(project: Path, invoke: Invoke, name: str) -> None:
    (project / os.fsdecode(b"\xff<a>.py")).write_text(SAFE)
    outcome = invoke("check", "--output-format", name, ".")
    assert outcome.code == 1
    assert outcome.err == ""
    assert invoke("check", "--output-format", name, "--output-file", "report", ".").code == 1


def test_a_process_that_dies_is_one_line_and_2(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlint.engine.worker import Worker

    real = Worker.check

    def dying(worker: Worker, task: Task) -> object:
        if task.path == "bad.py":
            os.kill(os.getpid(), signal.SIGKILL)
        return real(worker, task)

    monkeypatch.setattr(Worker, "check", dying)
    for each in ("a.py", "bad.py", "c.py"):
        (project / each).write_text(SAFE)
    outcome = invoke("check", "--output-format", "concise", "--jobs", "2", ".")
    assert outcome.code == 2
    assert [line.partition(":")[0] for line in outcome.out.splitlines()[:2]] == ["a.py", "c.py"]
    assert outcome.err == "error: bad.py: the process that checked this file died (signal 9); the file was left out\n"


def test_a_closed_pipe_ends_quietly(project: Path) -> None:
    (project / "a.py").write_text("import torch\n" + SAFE.splitlines()[2].join(["", "\n"]) * 250)
    command = [sys.executable, "-m", "torchlint", "check", "a.py"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment())
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) in (0, 1)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--output-format", "json", "--output-format", "sarif"), "one run gives one report, not json and sarif"),
        (("-o", "a.txt", "-o", "b.txt"), "not to a.txt and b.txt"),
        (("-o", "."), "it is a folder"),
        (("-o", "missing/a.sarif"), "there is no folder missing"),
        (("-o", "a.py/a.sarif"), "there is no folder a.py"),
    ],
)
def test_reports_with_no_place_to_go(project: Path, invoke: Invoke, arguments: tuple[str, ...], reason: str) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", *arguments, "a.py")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert reason in outcome.err


def test_a_report_that_may_not_be_written(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(SAFE)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    outcome = invoke("check", "-o", "report.txt", "a.py")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: cannot write the report to report.txt: . may not be written (")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("name", ["sarif", "html", "text"])
def test_a_full_disk(project: Path, invoke: Invoke, name: str) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", name, "-o", "/dev/full", "a.py")
    assert outcome.code == 2
    assert outcome.err == "error: cannot write the report to /dev/full: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "TL601", "--json", "missing/out.json"),
        ("bench", "TL601", "--plot", "missing/out.svg"),
        ("verify", ".", "--report", "missing/report.md", "--", "python", "a.py"),
    ],
)
def test_measurements_are_not_taken_for_a_file_that_cannot_be_written(
    project: Path, invoke: Invoke, arguments: tuple[str, ...]
) -> None:
    outcome = invoke(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: cannot write missing/")
    assert "there is no folder missing" in outcome.err
    assert outcome.err.count("\n") == 1


FULL = """
import resource, sys
from torchlint.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
raise SystemExit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["sarif", "html", "text"])
def test_what_was_there_survives_a_full_disk(project: Path, name: str) -> None:
    (project / "a.py").write_text("import torch\n" + SAFE.splitlines()[2].join(["", "\n"]) * 20)
    (project / "report").write_text("precious")
    for path, content in (("report", "precious"), ("new", None)):
        command = [sys.executable, "-c", FULL, "check", "--no-cache", "--output-format", name, "-o", path, "a.py"]
        outcome = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert outcome.stderr == f"error: cannot write the report to {path}: File too large\n"
        assert ((project / path).read_text() if (project / path).exists() else None) == content
    assert sorted(os.listdir(project)) == ["a.py", "report"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output-format", "json", "--output-format", "sarif"),
        ("--since", "no-such-revision"),
        ("--baseline", "other.json"),
        ("--baseline", "missing.json"),
        ("--select", "NOPE"),
        ("--config", "missing.toml"),
    ],
)
def test_a_run_that_cannot_begin_leaves_the_report_of_the_last_one(
    project: Path, invoke: Invoke, arguments: tuple[str, ...]
) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "report").write_text("precious")
    (project / "other.json").write_text('{"torchlint-baseline": 99, "findings": {}}')
    outcome = invoke("check", *arguments, "-o", "report", "a.py")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert (project / "report").read_text() == "precious"


def test_the_same_format_twice_is_no_contradiction(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    outcome = invoke("check", "--output-format", "json", "--output-format", "json", "-o", "a.json", "a.py")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "")
    assert json.loads((project / "a.json").read_text())[0]["code"] == "TL601"
