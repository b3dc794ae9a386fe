"""Completion in the shells that are there: bash always is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from torchlint.registry import rules

ROOT = Path(__file__).parents[2]


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torchlint on the PATH, which the scripts call."""
    folder = project.parent / "bin"
    folder.mkdir()
    script = folder / "torchlint"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m torchlint "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return script


def words(kind: str, line: str, project: Path) -> list[str]:
    """Return what click's protocol answers for the last word of a line, without the descriptions."""
    typed = line.split(" ")
    variables = {
        "COMP_WORDS": line,
        "COMP_CWORD": typed[-1] if kind == "fish" else str(len(typed) - 1),
        "_TORCHLINT_COMPLETE": f"{kind}_complete",
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "torchlint"], cwd=project, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [answer.partition(",")[2].partition("\t")[0] for answer in done.stdout.splitlines()]


def test_commands_options_and_formats(project: Path) -> None:
    assert words("bash", "torchlint ch", project) == ["check"]
    assert words("bash", "torchlint check --watc", project) == ["--watch"]
    assert words("bash", "torchlint check --output-format json", project) == ["json", "json-lines"]
    assert words("bash", "torchlint completion ", project) == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("option", ["--select", "--ignore", "--extend-select", "--extend-safe-fixes"])
def test_rules_by_code_and_name(project: Path, option: str) -> None:
    assert words("bash", f"torchlint check {option} TL60", project) == [
        rule.code for rule in rules() if rule.code.startswith("TL60")
    ]
    assert words("bash", f"torchlint fix {option} anomaly", project) == ["anomaly-detection-left-on"]
    assert words("bash", f"torchlint fix {option} TL101,tl601", project) == ["TL101,TL601"]


def test_the_rule_to_explain(project: Path) -> None:
    assert words("bash", "torchlint rules TL601", project) == ["TL601"]
    assert set(words("bash", "torchlint rules ", project)) == {
        word for rule in rules() for word in (rule.code, rule.name)
    }


def test_wrong_settings_do_not_get_in_the_way(project: Path) -> None:
    (project / "torchlint.toml").write_text("colour = 1\n")
    assert words("bash", "torchlint rules TL601", project) == ["TL601"]


def test_bash_completes(command: Path, project: Path) -> None:
    program = """
        eval "$(torchlint completion bash)"
        COMP_WORDS=(torchlint check --select TL601) COMP_CWORD=3
        _torchlint_completion torchlint
        printf '%s\\n' "${COMPREPLY[@]}"
        complete -p torchlint
    """
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["TL601", "complete -o nosort -F _torchlint_completion torchlint"]
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_accepted(command: Path, project: Path, shell: str) -> None:
    script = subprocess.run(["torchlint", "completion", shell], capture_output=True, text=True, check=True).stdout
    assert "_TORCHLINT_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)


def test_another_shell_is_a_clear_error(invoke: Invoke) -> None:
    outcome = invoke("completion", "csh")
    assert outcome.code == 2
    assert outcome.err.startswith("error: Invalid value for ")
    assert len(outcome.err.splitlines()) == 1
