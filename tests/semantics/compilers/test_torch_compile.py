"""What `torch.compile` traces, by decorators, calls, methods and the calls below."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

PROGRAM = """
import torch
from torch import nn

def helper(x):
    return x + 1

@torch.compiler.disable
def opaque(x):
    return x - 1

def run(x):
    return opaque(helper(x))

class Inner(nn.Module):
    def forward(self, x):
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(self.extra(x))

    def extra(self, x):
        return x

class Tool:
    def apply(self, x):
        return x

def other(x):
    return x

{compiled}
"""


def traced(compiled: str) -> set[str]:
    """Return the names of the functions that are traced."""
    model = model_of(PROGRAM.format(compiled=compiled))
    return {f.name.value for f in model.nodes(cst.FunctionDef) if model.is_traced(f.body.body[0])}


@pytest.mark.parametrize(
    ("compiled", "expected"),
    [
        ("torch.compile(run)", {"run", "helper"}),
        ("fast = torch.compile(model=run, dynamic=True)", {"run", "helper"}),
        ("net = torch.compile(Net())", {"forward", "extra"}),
        ("net = Net()\nnet.compile()", {"forward", "extra"}),
        ("tool = Tool()\nfast = torch.compile(tool.apply)", {"apply"}),
        ("@torch.compile\ndef step(x):\n    return other(x)", {"step", "other"}),
        ("@torch.compile(fullgraph=True)\ndef step(x):\n    return x", {"step"}),
        ("@torch.compile(disable=True)\ndef step(x):\n    return x", set()),
        ("torch.compile(run, disable=True)", set()),
        ("def test_it():\n    torch.compile(run)", set()),
        ("import re\nre.compile(other)", set()),
        ("class Made:\n    pass\nMade().compile()", set()),
        ("def wrap(model):\n    return torch.compile(model)", set()),
    ],
)
def test_traced(compiled: str, expected: set[str]) -> None:
    assert traced(compiled) == expected
