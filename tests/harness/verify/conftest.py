"""A small project whose torch is a stand-in, so that programs run anywhere and take the time they are told to."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

STAND_IN = """
import os, time


class autograd:
    slow = False

    @staticmethod
    def set_detect_anomaly(mode):
        autograd.slow = mode


def work():
    time.sleep(0.2 if autograd.slow else 0.02)


def zeros(*shape, device=None):
    if device and os.environ.get("NO_DEVICE"):
        raise RuntimeError("no kernel for " + device)
    return Zeros(device)


class Zeros:
    def __init__(self, device):
        self.device = device

    def to(self, device):
        return Zeros(device)
"""

PROGRAM = """import torch

torch.autograd.set_detect_anomaly(True)
state = torch.zeros(2).to("cuda")
torch.work()
print("loss: 0.25")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / "torch").mkdir(parents=True)
    (root / "torch" / "__init__.py").write_text(STAND_IN)
    (root / "train.py").write_text(PROGRAM)
    (root / ".gitignore").write_text("data/\n*.ckpt\n")
    (root / "pyproject.toml").write_text("[tool.torchlint]\ntarget-torch = '2.4'\nexclude = ['torch']\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(root)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return root
