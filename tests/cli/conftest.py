"""Running commands in a folder of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchlint.cli import run

SAFE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
"""One finding with a safe fix: TL601 on row 3."""

FIXED = "import torch\n\nx = torch.zeros(3)\n"
CLEAN = "import torch\n\nx = torch.zeros(3)\n"


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


Invoke = Callable[..., Outcome]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, without colours."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def invoke(project: Path, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A function that runs a command line and returns its exit code and output."""

    def call(*arguments: str | os.PathLike[str]) -> Outcome:
        code = run([os.fspath(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
