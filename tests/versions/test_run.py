"""The lock and the lower bounds are those of the project, and a version that is not here is told."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.versions import run


def project() -> dict[str, list[str]]:
    return run.tomllib.loads((run.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]  # type: ignore[no-any-return]


def test_the_lock_has_a_version_of_each_dependency_that_the_project_allows() -> None:
    locked = [Requirement(line) for line in run.LOCK.read_text().splitlines() if line and not line.startswith("#")]
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *extras["dev"], *extras["docs"], *extras["browser"]]  # type: ignore[call-overload]
    for requirement in map(Requirement, wanted):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        versions = [str(each.specifier).removeprefix("==") for each in locked if each.name == name]
        assert versions, f"{name} is not locked: make lock"
        assert all(version in requirement.specifier for version in versions), f"{name}: make lock"


def test_every_dependency_has_a_lower_bound() -> None:
    assert len(run.lowest(project()["dependencies"])) == len(project()["dependencies"])
    assert run.lowest(["a>=1.5,<2", "b>=2; python_version < '3.11'"]) == ["a==1.5", 'b==2 ; python_version < "3.11"']
    with pytest.raises(ValueError, match="a<2 has no lower bound"):
        run.lowest(["a<2"])


def test_every_python_that_the_project_names_is_tried() -> None:
    named = [words.rpartition(" :: ")[2] for words in project()["classifiers"] if re.search(r":: 3\.\d+$", words)]
    assert set(named) <= set(run.PYTHONS)


def test_a_python_that_is_not_here_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", "nowhere")
    assert run.main(["pythons", "--versions", "3.9"]) == run.INCOMPLETE
    assert capsys.readouterr().out == "Python 3.9: NOT RUN: there is none on this machine\n"


def test_what_the_tests_say_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    codes = {"3.10": run.OK, "3.11": run.WRONG, sys.executable: run.OK}

    def run_tests(
        name: str, python: str, constraints: Path, arguments: list[str], *, without: tuple[str, ...] = ()
    ) -> run.Row:
        words = f"{constraints.read_text().count('==')} constraints, {' '.join(arguments)}"
        return run.Row(name, words, codes[python])

    monkeypatch.setattr(run, "interpreter", lambda version: version)
    monkeypatch.setattr(run, "run_tests", run_tests)
    assert run.main(["pythons", "--versions", "3.10", "--", "-x"]) == run.OK
    assert run.main(["pythons", "--versions", "3.10,3.11"]) == run.WRONG
    assert run.main(["lowest", "--", "tests/edits", "-q"]) == run.OK
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"Python 3.10: {run.LOCK.read_text().count('==')} constraints, -x"
    assert told[-1].startswith("libcst==")
    assert told[-1].endswith(f": {len(project()['dependencies'])} constraints, tests/edits -q")
