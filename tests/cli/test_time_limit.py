"""A file that takes too long costs itself only: one line, exit code 2, and nothing is written to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import torchlint.engine.file as engine
from tests.cli.conftest import FIXED, SAFE, Invoke
from torchlint import check_paths, check_source, fix_source
from torchlint.source import Source

LINE = "error: slow.py: given up after 1 s; `file-timeout` sets this limit (0 is none)\n"


@pytest.fixture
def hanging(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files, for one of which a stage does not come to an end."""
    real = engine.suppress.apply

    def hang(source: Source, *others: Any) -> object:
        while Path(source.path).name == "slow.py":
            time.sleep(0.001)
        return real(source, *others)

    monkeypatch.setattr(engine.suppress, "apply", hang)
    for name in ("a.py", "b.py", "slow.py"):
        (project / name).write_text(SAFE)
    return project


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_other_files_are_checked(hanging: Path, invoke: Invoke, jobs: str) -> None:
    outcome = invoke("check", "--jobs", jobs, "--file-timeout", "1", "--output-format", "json", ".")
    assert (outcome.code, outcome.err) == (2, LINE)
    assert [Path(entry["filename"]).name for entry in json.loads(outcome.out)] == ["a.py", "b.py"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_other_files_are_fixed(hanging: Path, invoke: Invoke, jobs: str) -> None:
    (hanging / "torchlint.toml").write_text("file-timeout = 1\n")
    before = (hanging / "slow.py").read_bytes()
    outcome = invoke("fix", "--apply", "--jobs", jobs, ".")
    assert outcome.code == 2
    assert LINE in outcome.err
    assert (hanging / "a.py").read_text() == (hanging / "b.py").read_text() == FIXED
    assert (hanging / "slow.py").read_bytes() == before


def test_the_other_files_get_their_comments(hanging: Path, invoke: Invoke) -> None:
    before = (hanging / "slow.py").read_bytes()
    outcome = invoke("check", "--add-ignore", "--apply", "--file-timeout", "1", ".")
    assert outcome.code == 2
    assert LINE in outcome.err
    assert "torchlint: ignore[TL601]" in (hanging / "a.py").read_text()
    assert (hanging / "slow.py").read_bytes() == before


def test_a_file_that_was_given_up_is_not_taken_for_known(
    hanging: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert invoke("check", "--file-timeout", "1", ".").code == 2
    monkeypatch.undo()
    monkeypatch.chdir(hanging)
    outcome = invoke("check", "--file-timeout", "1", "--output-format", "concise", ".")
    assert "slow.py:3:1: TL601" in outcome.out
    assert (outcome.code, outcome.err) == (1, "")


def test_programs_learn_of_it(hanging: Path) -> None:
    results = check_paths([str(hanging)], file_timeout=1)
    assert [len(result.errors) for result in results] == [0, 0, 1]
    text = (hanging / "slow.py").read_text()
    for function in (check_source, fix_source):
        with pytest.raises(RuntimeError, match=r"slow\.py: given up after 1 s"):
            function(text, filename="slow.py", file_timeout=1)  # type: ignore[operator]


def test_without_a_limit_a_slow_file_is_checked(project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.suspects.run_rule

    def dawdle(*given: object) -> Iterator[object]:
        time.sleep(0.05)
        yield from real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.suspects, "run_rule", dawdle)
    (project / "slow.py").write_text(SAFE)
    assert invoke("check", "--no-cache", "--file-timeout", "0.01", ".").code == 2
    outcome = invoke("check", "--no-cache", "--file-timeout", "0", ".")
    assert (outcome.code, outcome.err) == (1, "")
