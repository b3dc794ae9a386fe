"""The demo trains, and goes on training after all its fixes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_files import FIXTURES
from torchlint.cli import run as torchlint

ARGUMENTS = ("--epochs", "1", "--train-images", "64", "--val-images", "32", "--batch-size", "16")


def losses(folder: Path) -> list[float]:
    """Return the numbers that a run of the training program prints."""
    command = [sys.executable, "train.py", *ARGUMENTS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in re.findall(r"\d+\.\d+", run.stdout)]


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return a copy of the demo."""
    return Path(shutil.copytree(FIXTURES / "demo", tmp_path / "demo"))


def test_safe_fixes_change_no_number(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = losses(demo)
    assert torchlint(["fix", "--apply", str(demo)]) == 1, "unsafe ones remain"
    assert losses(demo) == before


def test_unsafe_fixes_leave_it_training(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torchlint(["fix", "--apply", "--unsafe-fixes", str(demo)])
    assert all(0 <= number < 5 for number in losses(demo))
