"""pre-commit itself installs the hooks from a repository and runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import commit, git
from tests.wheelhouse import wheelhouse

ROOT = Path(__file__).parents[2]
BAD = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nprint(torch)\n"
CONFIGURATION = """\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: torchlint-fix
      - id: torchlint
        args: [--select, TL601, --output-format, concise]
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what this checkout installs."""
    folder = tmp_path_factory.mktemp("torchlint")
    shutil.copytree(ROOT / "torchlint", folder / "torchlint", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where pre-commit keeps the environments of hooks, and pip gets what they need without a network."""
    home = str(tmp_path_factory.mktemp("pre-commit"))
    return {**os.environ, **wheelhouse(tmp_path_factory.mktemp("wheels")), "PRE_COMMIT_HOME": home}


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Path:
    """A repository whose commits go through the hooks."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    revision = git(repository, "rev-parse", "HEAD").strip()
    (project / ".pre-commit-config.yaml").write_text(CONFIGURATION.format(repository=repository, revision=revision))
    (project / "pyproject.toml").write_text('[tool.torchlint]\nexclude = ["left_out.py"]\n')
    return project


def hooks(project: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the hooks on all files."""
    git(project, "add", "-A")
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_the_hooks_fix_and_check_what_is_not_excluded(project: Path, environment: dict[str, str]) -> None:
    notebook = {"cells": [], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": BAD}
    (project / "notebook.ipynb").write_text(json.dumps({**notebook, "cells": [cell]}))
    for name in ("train.py", "left_out.py"):
        (project / name).write_text(BAD)
    checked = hooks(project, environment, "torchlint")
    assert checked.returncode == 1, checked.stdout
    assert "train.py:3:1: TL601" in checked.stdout
    assert "notebook.ipynb" in checked.stdout
    assert "left_out.py:" not in checked.stdout
    fixed = hooks(project, environment)
    assert fixed.returncode == 1, fixed.stdout
    assert "files were modified by this hook" in fixed.stdout
    assert "anomaly" not in (project / "train.py").read_text() + (project / "notebook.ipynb").read_text()
    assert "anomaly" in (project / "left_out.py").read_text()
    again = hooks(project, environment)
    assert again.returncode == 0, again.stdout
