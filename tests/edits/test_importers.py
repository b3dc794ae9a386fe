"""Names that other files take from a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.edits.importers import taken_by_others

NAMES = frozenset(("Variable", "np", "os"))


def module(folder: Path) -> str:
    """Write a module with imports, and return its path."""
    path = folder / "common.py"
    path.write_text("import os\nimport numpy as np\nfrom torch.autograd import Variable\n")
    return str(path)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("from common import *\n", NAMES),
        ("from .common import *\n", NAMES),
        ("def f():\n    from tools.common import np\n", {"np"}),
        ("from common import (\n    Variable,\n    np as numpy,\n)\n", {"Variable", "np"}),
        ("from common import load, \\\n    os\n", {"os"}),
        ("import common\n\nx = common.Variable(y)\n", {"Variable"}),
        ("from uncommon import *\n", set()),
        ("from common_tools import Variable\n", set()),
        ("from torch.autograd import Variable\nimport common\n", set()),
    ],
)
def test_what_others_take(tmp_path: Path, text: str, taken: set[str]) -> None:
    path = module(tmp_path)
    (tmp_path / "main.py").write_text(text)
    assert taken_by_others(path, NAMES) == taken


def test_files_above_and_below_count_up_to_the_top_of_the_project(tmp_path: Path) -> None:
    inside = tmp_path / "project" / "tools"
    (inside / "scripts").mkdir(parents=True)
    path = module(inside)
    (inside / "scripts" / "run.py").write_text("from common import np\n")
    (tmp_path / "project" / "train.py").write_text("from tools.common import os\n")
    (tmp_path / "project" / "setup.py").write_text("")
    (tmp_path / "other.py").write_text("from common import *\n")
    assert taken_by_others(path, NAMES) == {"np", "os"}
    (tmp_path / "project" / "apps").mkdir()
    (tmp_path / "project" / "apps" / "show.py").write_text("from tools import common as c\nx = c.Variable(y)\n")
    assert taken_by_others(path, NAMES) == NAMES


def test_a_text_without_a_file_passes_nothing_on() -> None:
    assert taken_by_others("common.py", NAMES) == frozenset()
    assert taken_by_others("", NAMES) == frozenset()


def test_what_cannot_be_read_takes_nothing(tmp_path: Path) -> None:
    path = module(tmp_path)
    (tmp_path / "broken.py").write_bytes(b"from common import \xff\xfe\n")
    (tmp_path / "folder.py").mkdir()
    assert taken_by_others(path, NAMES) == frozenset()
