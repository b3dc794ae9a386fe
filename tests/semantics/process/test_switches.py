"""Settings are found in every spelling, and helpers that make runs repeatable are told from programs."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.semantics.model import Model, Options
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.syntax.walk import walk


def model_of(text: str) -> Model:
    return Model(walk(cst.parse_module(text)), UNKNOWN_TARGET, Options())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch\ntorch.backends.cudnn.benchmark = False", ["torch.backends.cudnn.benchmark"]),
        ("from torch.backends import cudnn as c\nc.enabled = False", ["torch.backends.cudnn.enabled"]),
        (
            "from torch.backends import cudnn\ncudnn.benchmark = cudnn.enabled = x",
            ["torch.backends.cudnn.benchmark", "torch.backends.cudnn.enabled"],
        ),
        ("from torch.backends import cudnn\n(cudnn.benchmark, y) = (True, 2)", ["torch.backends.cudnn.benchmark"]),
        ("import torch\nsetattr(torch.backends.cudnn, 'enabled', x)", ["torch.backends.cudnn.enabled"]),
        ("import os\nos.environ['A'] = '1'", ["os.environ[A]"]),
        ("from os import environ as e\ne.setdefault('A', '1')", ["os.environ[A]"]),
        ("import os\nos.environ.update({'A': '1'}, B='2')", ["os.environ[A]", "os.environ[B]"]),
        ("environ = {}\nenviron['A'] = '1'", []),
        ("class C:\n    pass\nc = C()\nc.benchmark = False", []),
        ("import os\nos.environ[key] = '1'", []),
    ],
)
def test_settings(text: str, names: list[str]) -> None:
    model = model_of(text)
    nodes = [*model.nodes(cst.Assign), *model.nodes(cst.Call)]
    found = sorted(setting.name for node in nodes for setting in model.switches.settings(node))
    assert found == sorted(names)


HEAD = "import random\nimport torch\nfrom torch.backends import cudnn\n"


@pytest.mark.parametrize(
    ("body", "repeatable"),
    [
        ("def set_seed(n):\n    cudnn.deterministic = True", True),
        ("def prepare(n):\n    random.seed(n)\n    torch.manual_seed(n)\n    cudnn.deterministic = True", True),
        ("class DeterministicEngine:\n    def run(self):\n        cudnn.deterministic = True", True),
        ("def main(n):\n    torch.manual_seed(n)\n    cudnn.deterministic = True\n    a()\n    b()\n    c()", False),
        ("torch.manual_seed(0)\ncudnn.deterministic = True", False),
    ],
)
def test_makes_repeatable(body: str, repeatable: bool) -> None:
    model = model_of(HEAD + body)
    assert model.switches.makes_repeatable(model.nodes(cst.Assign)[-1]) is repeatable


@pytest.mark.parametrize(
    ("after", "restored"),
    [
        ("    cudnn.enabled = True", True),
        ("    cudnn.enabled = before", True),
        ("    cudnn.enabled = False", False),
        ("    cudnn.benchmark = True", False),
        ("cudnn.enabled = True", False),
    ],
)
def test_restored(after: str, restored: bool) -> None:
    model = model_of(f"{HEAD}def f(before):\n    cudnn.enabled = False\n{after}\n")
    (setting,) = model.switches.settings(model.nodes(cst.Assign)[0])
    assert model.switches.restored(setting) is restored


@pytest.mark.parametrize(
    ("body", "setter"),
    [
        ("def slow():\n    cudnn.benchmark = False\n    print('slow')", True),
        ("def slow():\n    cudnn.benchmark = False\nslow()", False),
        ("def slow(x):\n    cudnn.benchmark = False\n    return net(x)", False),
        ("def slow(x):\n    cudnn.benchmark = False\n    for y in x:\n        pass", False),
        ("cudnn.benchmark = False", False),
    ],
)
def test_is_setter(body: str, setter: bool) -> None:
    model = model_of(HEAD + body)
    assert model.switches.is_setter(model.nodes(cst.Assign)[0]) is setter
