"""Which modules of a project are read along with one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.project.modules import Module, links, neighbours, read_module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a package, a module in it, and a script."""
    package = tmp_path / "lib" / "models"
    package.mkdir(parents=True)
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "lib" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .nets import Net\n")
    (package / "nets.py").write_text("class Net:\n    pass\n\n\ndef load():\n    return Net()\n")
    return tmp_path


def module(path: Path, text: str | None = None) -> Module:
    """Return a module, written before if a text is given."""
    if text is not None:
        path.write_text(text)
    found = read_module(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from lib.models.nets import load\n", [("load", False)]),
        ("from lib.models.nets import load as make, Net\n", [("make", False), ("Net", False)]),
        ("from lib.models.nets import *\n", [("*", False)]),
        ("from lib.models import nets\n", [("nets", True)]),
        ("import lib.models.nets as n\n", [("n", True)]),
        ("from lib.models import Net\n", [("Net", False)]),
        ("def f():\n    from lib.models.nets import load\n", [("load", False)]),
        ("import lib.models as m\n\nm.Net()\n", [("m", False)]),
        ("import lib.models.nets\n", []),
        ("from lib.models import other\n", []),
        ("from nets import load\n", []),
        ("import torch\n", []),
    ],
)
def test_by_which_names_a_module_has_another(project: Path, text: str, names: list[tuple[str, bool]]) -> None:
    script = module(project / "train.py", text)
    found = links(script, module(project / "lib" / "models" / "nets.py"))
    assert [(link.name, link.is_module) for link in found] == names
    expected = ["nets.py"] if names else []
    assert [each.path.name for each in neighbours(script) if each.path.name != "__init__.py"] == expected


@pytest.mark.parametrize(
    "text",
    ["from .nets import load\n", "from . import nets\n", "from . import Net\n", "from ..models.nets import Net\n"],
)
def test_imports_that_begin_with_a_point(project: Path, text: str) -> None:
    beside = module(project / "lib" / "models" / "beside.py", text)
    nets = module(project / "lib" / "models" / "nets.py")
    assert links(beside, nets)
    assert beside.path in [each.path for each in neighbours(nets)]


def test_who_imports_a_module_by_way_of_its_package_is_a_neighbour(project: Path) -> None:
    module(project / "train.py", "from lib.models import Net\n")
    module(project / "show.py", "import lib\n")
    found = [each.path.name for each in neighbours(module(project / "lib" / "models" / "nets.py"))]
    assert "train.py" in found
    assert "show.py" not in found


def test_a_package_itself_and_a_text_without_a_file_have_none(project: Path) -> None:
    package = module(project / "lib" / "models" / "__init__.py")
    assert list(neighbours(package)) == []
    unsaved = read_module(project / "unsaved.py", "from lib.models.nets import load\n")
    assert unsaved is not None
    assert list(neighbours(unsaved)) == []


def test_what_cannot_be_read_is_no_module(project: Path) -> None:
    broken, binary = project / "broken.py", project / "binary.py"
    broken.write_text("def f(:\n")
    binary.write_bytes(b"x = '\xff'\n")
    assert read_module(broken) is None
    assert read_module(binary) is None
    assert read_module(project / "missing.py") is None
    user = module(project / "train.py", "from broken import f\nfrom binary import x\n")
    assert list(neighbours(user)) == []


@pytest.mark.parametrize(
    "text", ["import torch\n", "import cv2\n", "from torch import nn\n", "import json\n", "from ..... import x\n"]
)
def test_a_file_of_the_name_of_a_library_is_not_that_library(project: Path, text: str) -> None:
    backends = project / "lib" / "backends"
    backends.mkdir()
    for name in ("torch", "cv2", "json"):
        (backends / f"{name}.py").write_text("x = 1\n")
    assert list(neighbours(module(backends / "own.py", text))) == []


def test_the_packages_of_a_folder_for_sources_are_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lib"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (package / "__init__.py").write_text("")
    nets = module(package / "nets.py", "def load():\n    return 1\n")
    script = module(tmp_path / "train.py", "from lib.nets import load\n")
    assert [each.path for each in neighbours(script)] == [nets.path]


def test_a_name_that_no_file_can_have_is_no_module(project: Path) -> None:
    assert list(neighbours(module(project / "own.py", f"import {'x' * 300}\n"))) == []
