"""The demo holds all six anti-patterns, and what its README says is left alone is left alone."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.fixture_files import FIXTURES
from torchlint.cli import run

EXPECTED = {
    ("data.py", "TL101"): 2,
    ("evaluate.py", "TL201"): 1,
    ("evaluate.py", "TL202"): 2,
    ("model.py", "TL401"): 3,
    ("evaluate.py", "TL205"): 4,
    ("train.py", "TL201"): 4,
    ("train.py", "TL202"): 1,
    ("train.py", "TL205"): 4,
    ("train.py", "TL301"): 3,
    ("train.py", "TL601"): 1,
}


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return a copy of the demo."""
    return Path(shutil.copytree(FIXTURES / "demo", tmp_path / "demo"))


def findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> Counter[tuple[str, str]]:
    """Return how many findings of each code each file has."""
    capsys.readouterr()
    run(["check", "--output-format", "json", str(folder)])
    found = json.loads(capsys.readouterr().out)
    return Counter((Path(finding["filename"]).name, finding["code"]) for finding in found)


def test_every_rule_finds_what_it_should(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(demo, capsys) == EXPECTED


def test_fixes_leave_nothing(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["fix", "--apply", "--unsafe-fixes", str(demo)])
    assert not findings(demo, capsys)
