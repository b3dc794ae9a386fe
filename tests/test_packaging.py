"""The built wheel works outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.wheelhouse import wheelhouse
from torchlint.registry import rules

ROOT = Path(__file__).parent.parent
BAD = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which pip gets what torchlint needs, and nothing else, without a network."""
    return {**os.environ, **wheelhouse(tmp_path_factory.mktemp("wheels"), "flake8")}


@pytest.fixture(scope="module")
def wheel(pip: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, env=pip, check=True, capture_output=True, text=True)
    (built,) = folder.glob("torchlint-*.whl")
    return built


@pytest.fixture(scope="module")
def torchlint(wheel: Path, pip: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the console script of a fresh environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    command = [str(scripts / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(command, env=pip, check=True, capture_output=True, text=True)
    return scripts / "torchlint"


def run(script: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the console script without what the environment of the tests would lend it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(script), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_wheel_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "torchlint/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"torchlint"}
    on_disk = {path.relative_to(ROOT).as_posix() for path in (ROOT / "torchlint").rglob("*.py")}
    on_disk |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "torchlint" / "evidence").glob("*.json")}
    on_disk |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "torchlint" / "report" / "assets").iterdir()}
    assert on_disk <= set(names)


def test_version(torchlint: Path, tmp_path: Path) -> None:
    assert run(torchlint, "--version", cwd=tmp_path).stdout.startswith("torchlint ")


def test_check_and_fix(torchlint: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    checked = run(torchlint, "check", "--output-format", "concise", ".", cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (1, "")
    assert "TL601" in checked.stdout
    fixed = run(torchlint, "fix", "--apply", ".", cwd=tmp_path)
    assert fixed.returncode == 0
    assert "anomaly" not in (tmp_path / "train.py").read_text(encoding="utf-8")


def test_rules_and_their_pages(torchlint: Path, tmp_path: Path) -> None:
    listed = run(torchlint, "rules", cwd=tmp_path)
    assert listed.returncode == 0
    for rule in rules():
        assert rule.code in listed.stdout
    page = run(torchlint, "rules", "TL601", cwd=tmp_path)
    assert page.returncode == 0
    assert "Why it costs" in page.stdout


def test_flake8_beside_it_has_the_plugin(torchlint: Path, pip: dict[str, str], tmp_path: Path) -> None:
    command = [str(torchlint.parent / "python"), "-m", "pip", "install", "--quiet", "flake8"]
    subprocess.run(command, env=pip, check=True, capture_output=True, text=True)
    flake8 = torchlint.parent / "flake8"
    assert "torchlint: " in run(flake8, "--version", cwd=tmp_path).stdout
    (tmp_path / "train.py").write_text(BAD + "\nimport os\n", encoding="utf-8")
    found = run(flake8, "--select=TL", "train.py", cwd=tmp_path)
    assert [line.split(" ")[:2] for line in found.stdout.splitlines()] == [["train.py:3:1:", "TL601"]]
