"""Two modules of a project as one text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlint.project.joined import joined
from torchlint.project.modules import read_module


def join(folder: Path, own: str, other: str) -> str:
    """Return two modules, ``own.py`` and ``other.py``, as one text."""
    texts = {"own": own, "other": other}
    modules = []
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        module = read_module(path)
        assert module is not None
        modules.append(module)
    whole = joined(*modules)
    assert whole is not None
    ast.parse(whole)
    return whole


OWN = "import torch\n\n\ndef evaluate(model, x):\n    return model(x)\n"


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ("from own import evaluate\n\nevaluate(net, y)\n", "evaluate(net, y)"),
        ("from own import evaluate as run\n\nrun(net, y)\n", "run = evaluate"),
        ("import own\n\nown.evaluate(net, y)\n", "evaluate(net, y)"),
        ("import own as o\nimport os\n\no.evaluate(net, y)\n", "evaluate(net, y)"),
        ("from own import *\n\nevaluate(net, y)\n", "evaluate(net, y)"),
    ],
)
def test_what_imports_a_module_sees_what_it_defines(tmp_path: Path, other: str, line: str) -> None:
    whole = join(tmp_path, OWN, other)
    assert whole.startswith(OWN)
    assert line in whole.splitlines()
    assert "import own" not in whole
    assert "from own" not in whole


@pytest.mark.parametrize(
    "own",
    [
        "from other import anneal\n\nanneal(weight)\n",
        "from other import (\n    anneal,  # why\n    size,\n)\n\nanneal(weight)\n",
        "import other\n\nother.anneal(weight)\n",
        "from other import anneal as change\n\nchange(weight)\n",
    ],
)
def test_what_a_module_imports_is_below_it_and_nothing_of_its_own_moves(tmp_path: Path, own: str) -> None:
    whole = join(tmp_path, own, "size = 3\n\n\ndef anneal(w):\n    w.mul_(2)\n")
    call = own.splitlines()[-1]
    start = own.index(call)
    assert whole[start:].startswith("change(" if "change" in call else "anneal")
    names = {node.id for node in ast.walk(ast.parse(whole)) if isinstance(node, ast.Name)}
    assert "other" not in names
    assert ("change = anneal" in whole) == ("change" in call)


def test_imports_of_something_else_in_the_same_statement_stay(tmp_path: Path) -> None:
    (tmp_path / "third.py").write_text("")
    whole = join(tmp_path, "from . import other, third as t\n\nother.f(t)\n", "def f(x):\n    return x\n")
    assert whole.splitlines()[0].strip() == "from . import third as t"
    assert whole.splitlines()[2].startswith("f ")


def test_names_that_both_define_differ(tmp_path: Path) -> None:
    own = OWN + "\n\ndef main():\n    pass\n\n\ndevice = 'cpu'\n"
    other = (
        "import torch\nfrom own import evaluate\nfrom settings import device\n\n\n"
        "def main(args, model=device):\n    device = args.device\n    evaluate(model, device)\n\n\n"
        "class main2:\n    main = 3\n\n\nmain(device)\n"
    )
    whole = join(tmp_path, own, other)
    lines = whole[len(own) :].splitlines()
    assert "def main_of_the_other(args, model=device_of_the_other):" in lines
    assert "    device = args.device" in lines  # of the function
    assert "    evaluate(model, device)" in lines
    assert "from settings import device as device_of_the_other" in lines
    assert "main_of_the_other(device_of_the_other)" in lines
    assert "import torch" in lines


def test_comments_of_the_other_file_silence_nothing(tmp_path: Path) -> None:
    whole = join(tmp_path, OWN, "# torchlint: skip-file\nfrom own import evaluate  # noqa\n\nevaluate(1, 2)  # noqa\n")
    assert "#" not in whole[len(OWN) :]


def test_a_global_of_a_name_that_both_have_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("count = 1\n")
    (tmp_path / "other.py").write_text(
        "import own\ncount = 0\n\n\ndef add():\n    global count\n    count += own.count\n"
    )
    own, other = read_module(tmp_path / "own.py"), read_module(tmp_path / "other.py")
    assert own is not None
    assert other is not None
    assert joined(own, other) is None


def test_names_of_new_variables_are_free(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "other.py").write_text("from own import evaluate\n\nparts = [evaluate(1, 2)]\n")
    own, other = read_module(tmp_path / "own.py"), read_module(tmp_path / "other.py")
    assert own is not None
    assert other is not None
    whole = joined(own, other, frozenset(("parts",)))
    assert whole is not None
    assert "parts_of_the_other = [evaluate(1, 2)]" in whole


def test_attributes_of_classes_keep_their_names(tmp_path: Path) -> None:
    whole = join(tmp_path, "device = 1\n", "import own\n\n\nclass C:\n    device = own.device\n    size = device\n")
    assert "    device = device\n    size = device" in whole
