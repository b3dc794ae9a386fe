"""The torch version that a project says it supports."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.project.target import find_target, lower_bound
from torchlint.semantics.process.target import Target
from torchlint.settings import Settings

BOUNDS = {
    "torch>=2.0,<3": (2, 0),
    "torch==1.13.1": (1, 13),
    "torch ~= 2.1": (2, 1),
    "torch==2.1.*": (2, 1),
    "torch>1.12": (1, 12),
    "torch[opt]>=1.9.0+cu111": (1, 9),
    "torch>=2.0.0rc1 ; python_version>'3.8'": (2, 0),
    "torch==1.10.0+cu113 --hash=sha256:0": (1, 10),
    "torch>=1.8  # as the paper": (1, 8),
    "Torch>=1.8,>=1.10": (1, 10),
    "torch (>=1.11)": (1, 11),
    "torch===1.9": (1, 9),
    "torch": None,
    "torch<2": None,
    "torch!=2.0": None,
    "torchvision>=0.9": None,
    "torch @ https://example.org/torch.whl": None,
    "-r other.txt": None,
    "git+https://example.org/torch": None,
    "torch>=": None,
    "": None,
}

PROJECTS = {
    "pep 621": ({"pyproject.toml": '[project]\ndependencies = ["numpy", "torch>=2.1,<3"]\n'}, (2, 1), "torch>=2.1,<3"),
    "extra": ({"pyproject.toml": '[project.optional-dependencies]\ntrain = ["torch>=1.12"]\n'}, (1, 12), "torch"),
    "lowest of several": (
        {"pyproject.toml": '[project]\ndependencies = ["torch>=2.1"]\noptional-dependencies = {a = ["torch>=1.9"]}\n'},
        (1, 9),
        "torch>=1.9 in pyproject.toml",
    ),
    "group": ({"pyproject.toml": '[dependency-groups]\ndev = ["torch>=2.2", {include-group = "x"}]\n'}, (2, 2), "in"),
    "poetry caret": ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = "^2.0"\n'}, (2, 0), "pyproject.toml"),
    "poetry tilde": ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = "~1.13"\n'}, (1, 13), "pyproject.toml"),
    "poetry bare": ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = "1.12.1"\n'}, (1, 12), "pyproject.toml"),
    "poetry wide": ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = ">=1.10,<3"\n'}, (1, 10), "pyproject"),
    "poetry or": ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = "^2.1 || ^1.13"\n'}, (1, 13), "pyproject"),
    "poetry table": (
        {"pyproject.toml": '[tool.poetry.dependencies]\ntorch = {version = "^2.2", source = "x"}\n'},
        (2, 2),
        "pyproject.toml",
    ),
    "poetry group": (
        {"pyproject.toml": '[tool.poetry.group.train.dependencies]\ntorch = "^2.3"\n'},
        (2, 3),
        "pyproject.toml",
    ),
    "setup.cfg": (
        {"setup.cfg": "[options]\ninstall_requires =\n    numpy\n    torch>=1.11\n"},
        (1, 11),
        "torch>=1.11 in setup.cfg",
    ),
    "setup.cfg extra": (
        {"setup.cfg": "[options.extras_require]\nall =\n  torch>=1.12; x\n  torch >= 1.13\n"},
        (1, 13),
        "",
    ),
    "setup.py": (
        {"setup.py": 'import sys\nR = ["torch>=1.10", "x"]\nsetup(install_requires=R + f())\nsys.exit(1)\n'},
        (1, 10),
        "torch>=1.10 in setup.py",
    ),
    "requirements": (
        {"requirements.txt": "numpy\n-f https://example.org\ntorch == 1.7.1\n"},
        (1, 7),
        "torch==1.7.1 in requirements.txt",
    ),
    "requirements of development": ({"requirements-dev.txt": "torch>=2.4\n"}, (2, 4), "requirements-dev.txt"),
    "requirements folder": ({"requirements/base.txt": "torch>=1.9\n"}, (1, 9), "in requirements/base.txt"),
    "conda": ({"environment.yml": "dependencies:\n  - python=3.8\n  - pytorch=1.12.1=py3\n"}, (1, 12), "environment"),
    "conda channel": ({"environment.yaml": "dependencies:\n- pytorch::pytorch>=2.0\n"}, (2, 0), "environment.yaml"),
    "conda pip": ({"environment.yml": "dependencies:\n- pip:\n  - 'torch==2.0.1'  # pip\n"}, (2, 0), "environment.yml"),
    "pyproject before requirements": (
        {"pyproject.toml": '[project]\ndependencies = ["torch>=2.0"]\n', "requirements.txt": "torch==2.5.1\n"},
        (2, 0),
        "pyproject.toml",
    ),
    "pyproject without a bound": (
        {"pyproject.toml": '[project]\ndependencies = ["torch"]\n', "requirements.txt": "torch==2.5.1\n"},
        (2, 5),
        "requirements.txt",
    ),
    "broken files": (
        {
            "pyproject.toml": "torch = [",
            "setup.cfg": "torch\n=",
            "setup.py": "torch (",
            "requirements.txt": "torch>=2.0",
        },
        (2, 0),
        "requirements.txt",
    ),
}


@pytest.mark.parametrize(("requirement", "bound"), BOUNDS.items(), ids=BOUNDS)
def test_the_lower_bound_of_a_requirement(requirement: str, bound: tuple[int, int] | None) -> None:
    assert lower_bound(requirement) == bound


@pytest.mark.parametrize(("files", "version", "words"), PROJECTS.values(), ids=PROJECTS)
def test_a_project_says_its_target(tmp_path: Path, files: dict[str, str], version: tuple[int, int], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "src").mkdir()
    for folder in (tmp_path, tmp_path / "src"):
        target = find_target(str(folder), Settings())
        assert target is not None
        assert target.known
        assert target.version == version
        assert words in target.origin


def test_the_nearest_requirement_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "requirements.txt").write_text("torch==2.2\n")
    assert find_target(str(inner), Settings()) == Target((2, 2), "torch==2.2 in requirements.txt")


def test_another_repository_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9\n")
    (tmp_path / "inner/.git").mkdir(parents=True)
    (tmp_path / "inner/src").mkdir()
    assert find_target(str(tmp_path / "inner/src"), Settings()) is None


def test_the_settings_stand_above_the_project(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9\n")
    settings = Settings(target_torch="2.3.1", origin=str(tmp_path / "torchlint.toml"))
    assert find_target(str(tmp_path), settings) == Target((2, 3), "target-torch in torchlint.toml")
    assert find_target(str(tmp_path), Settings(target_torch="2.3")) == Target((2, 3), "target-torch")


def test_a_project_without_torch_says_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("numpy\ntorch\n")
    (tmp_path / "requirements").mkdir()
    assert find_target(str(tmp_path), Settings()) is None
