"""A forward pass is detached where all that goes on from it is detached."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.model import Model

PROGRAM = """
import torch
from torch import nn

def routine(net: nn.Module, other, x):
{body}
"""


def found(body: str) -> list[str]:
    """Return the detached forward passes of a function, each with its variable."""
    model: Model = model_of(PROGRAM.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    passes = [(call, model.detached.forward(call)) for call in model.nodes(cst.Call)]
    return [found.variable.value if found.variable else model.code(call) for call, found in passes if found is not None]


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ("y = net(x).detach()", ["net(x)"]),
        ("y = other(net(x).detach())", ["net(x)"]),
        ("y = (1 - torch.sigmoid(net(x)[0].logits.float())).detach()", ["net(x)"]),
        ("y = net(x)\nreturn y.detach()", ["y"]),
        ("y = net(x)\nprint(y.shape, y.mean().detach())", ["y"]),
        ("a, (b, c) = net(x)\nreturn a.detach() + b.detach()", ["a"]),
        ("y = net(x)\ny = y.detach()\nreturn y", ["y"]),
        ("y = net(x)\ny += 1\nreturn y.detach()", ["y"]),
        ("y = torch.zeros(1)\ny += net(x)\nreturn y.item()", ["net(x)"]),
        ("y = 0\nfor z in x:\n    y += net(z)\nreturn y.item()", ["net(z)"]),
        ("y = []\nfor z in x:\n    y.append(net(z).mean())\nreturn sum(y).item(), len(y)", ["net(z)"]),
        ("y, z = [], x\ny.append(net(z))\nreturn torch.cat(y).detach()", ["net(z)"]),
    ],
)
def test_detached(body: str, passes: list[str]) -> None:
    assert found(body) == passes


@pytest.mark.parametrize(
    "body",
    [
        "net(x.detach())",
        "y = other(net(x)).detach()",
        "y = net(x)\nreturn y",
        "y = net(x)\nreturn y.shape",
        "y = net(x)\nz = y.detach()\nreturn y + z",
        "a, b = net(x)\nreturn a.detach() + b",
        "y = z = net(x)\nreturn y.detach()",
        "y, self.z = net(x)\nreturn y.detach()",
        "y = net(x)\nf = lambda: y\nreturn y.detach()",
        "y = net(x).add_(1).detach()",
        "y = net(x).detach",
        "y = [net(x)][0].detach()",
        "y = net(x)\ny += 1\nreturn y",
        "y = [0]\ny.append(net(x))\nreturn y[0].detach()",
        "y = []\ny.append(net(x))\nreturn y",
        "y = []\ny.append(net(x))\nsum(y).backward()",
        "y = []\ny.append(net(x))\nother(y)",
        "other.append(net(x))",
        "y = 0\ny += net(x)\ny.backward()",
        "self.y += net(x)",
        "x += net(x)\nprint(x.item())",
        "y = other.total\ny += net(x)\nprint(y.item())",
        "y = net(x)\ndel y",
    ],
)
def test_used(body: str) -> None:
    assert found(body) == []
