"""What takes the output of a layer."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from torchlint.semantics.layers.parameters import Touch
from torchlint.semantics.model import Model, Options
from torchlint.semantics.process.target import UNKNOWN_TARGET
from torchlint.syntax.walk import walk

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def model_of(source: str) -> Model:
    module = cst.parse_module(HEADER + textwrap.dedent(source))
    return Model(walk(module), UNKNOWN_TARGET, Options())


def layer(model: Model, name: str) -> cst.Call:
    return next(call for call in model.nodes(cst.Call) if model.code(call.func) == name)


def uses(source: str, name: str = "nn.Conv2d") -> list[list[str]]:
    """Return, for each use of the first layer of a class, what can take its output; "?" where that is not visible."""
    model = model_of(source)
    found = model.layers.successors(layer(model, name))
    return [["?"] if use.shared else [model.code(c.node) for c in use.consumers] for use in found]


def in_forward(body: str) -> str:
    return (
        "class Net(nn.Module):\n"
        "    def __init__(self, flag):\n"
        "        super().__init__()\n"
        "        self.flag = flag\n"
        "        self.conv = nn.Conv2d(1, 2, 3)\n"
        "        self.bn = nn.BatchNorm2d(2)\n"
        "    def forward(self, x, other=None):\n" + textwrap.indent(textwrap.dedent(body), "        ")
    )


@pytest.mark.parametrize(
    "source",
    [
        "nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())",
        "nn.Sequential(*[nn.Conv2d(1, 2, 3), nn.ReLU()])",
        "layers = [nn.Conv2d(1, 2, 3)]\nlayers += [nn.ReLU()]\nnn.Sequential(*layers)",
        "layers = []\nlayers.append(nn.ReLU())\nlayers.insert(0, nn.Conv2d(1, 2, 3))\nnn.Sequential(*layers)",
        "net = nn.Sequential()\nnet.add_module('a', nn.Conv2d(1, 2, 3))\nnet.add_module('b', nn.ReLU())",
        "nn.Sequential(nn.Sequential(nn.Conv2d(1, 2, 3)), nn.Sequential(nn.ReLU()))",
        "def f():\n    return [nn.Conv2d(1, 2, 3)]\nnn.Sequential(*f(), nn.ReLU())",
        "first, second = nn.Conv2d(1, 2, 3), nn.ReLU()\nnn.Sequential(first, second)",
        "class Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Conv2d(1, 2, 3), nn.ReLU())",
    ],
)
def test_sequences(source: str) -> None:
    assert uses(source) == [["nn.ReLU()"]]


@pytest.mark.parametrize(
    "body",
    [
        "return self.bn(self.conv(x))",
        "x = self.conv(x)\nprint(x.shape, x.size(0))\nreturn F.relu(self.bn(x))",
        "y = self.conv(x)\nx = y\nreturn self.bn(x)",
        "with torch.no_grad():\n    x = self.conv(x)\nreturn self.bn(x)",
        "for _ in range(3):\n    x = self.bn(self.conv(x))\nreturn x",
        "modules = [self.conv, self.bn]\nfor module in modules:\n    x = module(x)\nreturn x",
    ],
)
def test_flow_in_forward(body: str) -> None:
    assert uses(in_forward(body)) == [["nn.BatchNorm2d(2)"]]


def test_two_takers_on_one_path_are_seen() -> None:
    model = model_of(in_forward("y = self.conv(x)\nz = self.bn(y)\nreturn y + z"))
    (use,) = model.layers.successors(layer(model, "nn.Conv2d"))
    assert len(use.twice) == 1


def test_takers_on_different_paths_are_alternatives() -> None:
    model = model_of(in_forward("x = self.conv(x)\nif self.flag:\n    x = self.bn(x)\nreturn F.relu(x)"))
    (use,) = model.layers.successors(layer(model, "nn.Conv2d"))
    assert [model.code(consumer.node) for consumer in use.consumers] == ["nn.BatchNorm2d(2)", "F.relu(x)"]
    assert not use.twice
    assert not use.chosen_at_run_time


@pytest.mark.parametrize("test", ["self.training", "other is not None", "x.mean() > 0"])
def test_a_call_can_decide(test: str) -> None:
    model = model_of(in_forward(f"y = self.conv(x)\nif {test}:\n    y = self.bn(y)\nreturn F.relu(y)"))
    (use,) = model.layers.successors(layer(model, "nn.Conv2d"))
    assert use.chosen_at_run_time


def test_what_cannot_be_followed_is_unseen() -> None:
    assert uses("keep(nn.Conv2d(1, 2, 3)).run()") == [["?"]]
    assert uses(in_forward("return self.conv(x)")) == [["?"]]


def test_each_use_of_a_helper_counts() -> None:
    source = "def conv():\n    return nn.Conv2d(1, 2, 3)\nnn.Sequential(conv(), nn.ReLU(), conv(), nn.Tanh())"
    assert uses(source) == [["nn.ReLU()"], ["nn.Tanh()"]]


def test_classes_come_through_parameters() -> None:
    model = model_of("""
        def block(norm_layer=None):
            if norm_layer is None:
                norm_layer = nn.BatchNorm2d
            return norm_layer(3)
        """)
    assert model.layers.class_names(layer(model, "norm_layer")) == {"torch.nn.BatchNorm2d"}


def test_cycles_of_parameters_end() -> None:
    names = [f"f{i}" for i in range(40)]
    calls = "".join(f"    {name}(make=make, other=make)\n" for name in names)
    source = "".join(f"def {name}(make, other):\n{calls}    make(1)\n    other(2)\n" for name in names)
    model = model_of(source)
    assert model.layers.class_names(layer(model, "make")) == frozenset()


@pytest.mark.parametrize(
    ("source", "touch"),
    [
        ("", Touch.NOT),
        ("for m in net.modules():\n    m.bias.data.zero_()", Touch.UNCHECKED),
        ("for m in net.modules():\n    if m.bias is not None:\n        m.bias.data.zero_()", Touch.CHECKED),
        ("for m in net.modules():\n    if m.bias is None:\n        continue\n    m.bias.data.zero_()", Touch.CHECKED),
        ("for m in net.modules():\n    if isinstance(m, nn.Linear):\n        m.bias.data.zero_()", Touch.NOT),
        ("for m in net.modules():\n    if isinstance(m, nn.Conv2d):\n        m.bias.data.zero_()", Touch.UNCHECKED),
        ("net.bias.data.zero_()", Touch.OWN),
    ],
)
def test_touches(source: str, touch: Touch) -> None:
    model = model_of("net = nn.Conv2d(1, 2, 3)\n" + source)
    assert model.layers.touches(layer(model, "nn.Conv2d"), "torch.nn.Conv2d", "bias") is touch


@pytest.mark.parametrize(
    ("body", "certain"),
    [
        ("x = x.view(-1, 8)\nreturn self.fc(x)", True),
        ("return self.fc(torch.flatten(x, 1))", True),
        ("return self.fc(F.relu(x.reshape(x.size(0), 8)))", True),
        ("return self.fc(x)", False),
        ("return self.fc(x.view(-1, 4, 8))", False),
        ("return self.fc(x.flatten(2))", False),
        ("x = x.view(-1, 8)\nx = x.unsqueeze(1)\nreturn self.fc(x)", False),
    ],
)
def test_ranks(body: str, certain: bool) -> None:
    source = in_forward(body).replace("nn.Conv2d(1, 2, 3)", "None\n        self.fc = nn.Linear(8, 8)")
    model = model_of(source)
    assert model.layers.takes_matrix(layer(model, "nn.Linear")) is certain
