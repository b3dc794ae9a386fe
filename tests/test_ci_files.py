"""What is meant for services: their schemas hold, and the action's scripts do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
ACTION = ROOT / "action.yml"
SNIPPET = re.compile(r"```yaml\n# (?P<name>[\w./-]+)\n(?P<text>.*?)```", re.DOTALL)
SCHEMAS = {
    ".github/workflows/torchlint.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    "azure-pipelines.yml": "vendor.azure-pipelines",
}
BAD = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"


def loaded(text: str) -> Any:
    """Return what a YAML text holds."""
    return YAML(typ="safe", pure=True).load(text)


def snippets() -> list[tuple[str, str]]:
    """Return name and text of each configuration file that the page on CI shows."""
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return [(match["name"], match["text"]) for match in SNIPPET.finditer(text)]


def validate(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Return what check-jsonschema says, by the schemas that it brings along."""
    # The schema of Azure has a pattern that is none in Unicode mode, the default of check-jsonschema before 0.39.
    options = ["--regex-variant", "nonunicode", "--builtin-schema", schema]
    command = [sys.executable, "-m", "check_jsonschema", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_action_follows_its_schema(tmp_path: Path) -> None:
    assert validate("vendor.github-actions", ACTION).returncode == 0
    (tmp_path / "action.yml").write_text(ACTION.read_text(encoding="utf-8").replace("using: composite", "using: magic"))
    assert validate("vendor.github-actions", tmp_path / "action.yml").returncode != 0


@pytest.mark.parametrize(("name", "text"), [each for each in snippets() if each[0] in SCHEMAS])
def test_snippets_follow_their_schemas(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / Path(name).name
    path.write_text(text, encoding="utf-8")
    outcome = validate(SCHEMAS[name], path)
    assert outcome.returncode == 0, outcome.stdout


def test_snippets_name_what_there_is() -> None:
    shown = snippets()
    assert {name for name, _ in shown} == {*SCHEMAS, ".pre-commit-config.yaml"}
    inputs = set(loaded(ACTION.read_text(encoding="utf-8"))["inputs"])
    hooks = {hook["id"] for hook in loaded((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    for name, text in shown:
        document = loaded(text)
        if name == ".pre-commit-config.yaml":
            assert {hook["id"] for repo in document["repos"] for hook in repo["hooks"]} <= hooks
        elif name.startswith(".github"):
            steps = document["jobs"]["torchlint"]["steps"]
            assert set(steps[-1]["with"]) <= inputs


class Run:
    """The action's steps as GitHub runs them, with torchlint from this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "torchlint command"
        self.command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m torchlint "$@"\n')
        self.command.chmod(0o755)

    def step(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Return what the step of this name does, with these inputs."""
        action = loaded(ACTION.read_text(encoding="utf-8"))
        (step,) = (each for each in action["runs"]["steps"] if each["name"] == name)
        values = {key: value.get("default", "") for key, value in action["inputs"].items()} | inputs
        environment = {**os.environ, **{key: self._filled(value, values) for key, value in step["env"].items()}}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        known = {f"inputs.{key}": value for key, value in values.items()}
        known["steps.install.outputs.command"] = str(self.command)
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: known[match[1]], text)


def test_the_action_annotates_and_fails(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    outcome = Run(tmp_path).step("Check")
    assert outcome.returncode == 1
    assert outcome.stdout.startswith("::warning file=a.py,line=3,")
    assert Run(tmp_path).step("Check", args="--ignore TL601 --quiet", paths="a.py").returncode == 0


def test_the_action_writes_sarif_without_failing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    outcome = Run(tmp_path).step("Write SARIF", **{"sarif-file": "out file.sarif"})
    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert '"TL601"' in (tmp_path / "out file.sarif").read_text()


def test_inputs_of_the_action_are_never_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    Run(tmp_path).step("Check", paths="a.py; touch owned $(touch owned)", args="`touch owned`")
    assert not (tmp_path / "owned").exists()
    action = ACTION.read_text(encoding="utf-8")
    scripts = [step["run"] for step in loaded(action)["runs"]["steps"] if "run" in step]
    assert not [script for script in scripts if "${{" in script]
