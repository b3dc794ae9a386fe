"""flake8 itself runs torchlint as one of its plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installed import pretend_installed

ROOT = Path(__file__).parents[2]
LOOP = """\
import torch

torch.autograd.set_detect_anomaly(True)


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad(set_to_none=False)
        model(batch).sum().backward()
        optimizer.step()
"""
ANOMALY = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"
PREVIEW = "import torch\n\ntorch.backends.cudnn.benchmark = False\n"

Flake8 = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def flake8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flake8:
    """A function that runs flake8 in an empty folder, with torchlint installed as far as flake8 can tell."""
    installed = pretend_installed(tmp_path / "installed")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    path = os.pathsep.join([str(installed), str(ROOT)])

    def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "flake8", "--max-line-length=500", "-j1", *arguments]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, capture_output=True, text=True, env=environment, input=given, check=False)

    return run


def places(result: subprocess.CompletedProcess[str]) -> list[str]:
    """Return place and code of each line that flake8 printed."""
    assert result.stderr == ""
    return [" ".join(line.split(" ")[:2]) for line in result.stdout.splitlines()]


def test_findings_stand_among_those_of_flake8(flake8: Flake8) -> None:
    Path("train.py").write_text(LOOP + "import os\n")
    found = places(flake8("train.py"))
    own = ["train.py:11:1: E305", "train.py:11:1: E402", "train.py:11:1: F401"]
    assert sorted(found) == sorted(["train.py:3:1: TL601", "train.py:8:9: TL301", *own])


def test_codes_are_selected_and_ignored(flake8: Flake8) -> None:
    Path("train.py").write_text(LOOP)
    assert places(flake8("--select=TL301", ".")) == ["./train.py:8:9: TL301"]
    assert places(flake8("--extend-ignore=TL6", ".")) == ["./train.py:8:9: TL301"]
    assert places(flake8("--extend-ignore=TL", ".")) == []


def test_selecting_a_rule_switches_it_on(flake8: Flake8) -> None:
    Path("a.py").write_text(PREVIEW)
    assert places(flake8("a.py")) == places(flake8("--select=TL", "a.py")) == []
    assert places(flake8("--extend-select=TL605", "a.py")) == ["a.py:3:1: TL605"]
    assert places(flake8("--extend-select=TL999", "a.py")) == []


def test_noqa_silences(flake8: Flake8) -> None:
    Path("train.py").write_text(LOOP.replace("=False)", "=False)  # noqa: TL301"))
    assert places(flake8("--select=TL", "train.py")) == ["train.py:3:1: TL601"]


def test_settings_of_torchlint_hold(flake8: Flake8) -> None:
    Path("train.py").write_text(LOOP)
    Path("left_out.py").write_text(LOOP)
    Path("torchlint.toml").write_text('ignore = ["TL6"]\nextend-exclude = ["left_out.py"]\n')
    assert places(flake8(".")) == ["./train.py:8:9: TL301"]


def test_wrong_settings_are_one_line_for_each_file(flake8: Flake8) -> None:
    Path("train.py").write_text(LOOP)
    Path("torchlint.toml").write_text('ignroe = ["TL3"]\n')
    result = flake8("train.py")
    assert places(result) == ["train.py:1:1: TL000"]
    assert "did you mean `ignore`?" in result.stdout
    assert result.returncode == 1


def test_a_syntax_error_is_left_to_flake8(flake8: Flake8) -> None:
    Path("broken.py").write_text("import torch\ndef f(:\n")
    Path("good.py").write_text(ANOMALY)
    assert places(flake8(".")) == ["./broken.py:2:8: E999", "./good.py:3:1: TL601"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + ANOMALY.replace("\n", "\r\n").encode(),
        b'# -*- coding: latin-1 -*-\nx = "\xe9"\n' + ANOMALY.encode(),
    ],
    ids=["a byte order mark", "Latin-1"],
)
def test_encodings(flake8: Flake8, data: bytes) -> None:
    Path("a.py").write_bytes(data)
    assert [place.split(" ")[1] for place in places(flake8("--select=TL", "a.py"))] == ["TL601"]


def test_standard_input(flake8: Flake8) -> None:
    assert places(flake8("--select=TL", "-", given=ANOMALY)) == ["stdin:3:1: TL601"]
    named = flake8("--select=TL", "--stdin-display-name=tests/test_a.py", "-", given=LOOP)
    assert places(named) == [], "performance rules are off in tests"


def test_unknown_codes_in_comments_are_told(flake8: Flake8) -> None:
    Path("a.py").write_text(ANOMALY + "x = 1  # torchlint: ignore[TL6O1]\n")
    assert "unknown rule `TL6O1`, did you mean `TL601`?" in flake8("a.py").stderr
