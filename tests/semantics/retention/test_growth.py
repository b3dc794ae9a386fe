"""Tensors that grow in loops, in every way of storing them."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.retention.growth import Growth

PROGRAM = """
import numpy as np
import torch

def run(loader, model, parts, self):
    x = torch.zeros(0)
    for y in loader:
{body}
    return x
"""


def grown(body: str) -> list[Growth]:
    """Return the growths of a loop body."""
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    found = [model.growths.find(call) for call in model.nodes(cst.Call)]
    return [growth for growth in found if growth is not None and not growth.rebuilt and not growth.few_passes]


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.cat([x, y])",
        "x = torch.cat((y, x), dim=0)",
        "x = torch.cat([x, y]).contiguous()",
        "x = y if x is None else torch.cat([x, y])",
        "x = np.append(x, y)",
        "x = np.concatenate((x, y))",
        "x = torch.vstack([x, y])",
        "self.x = torch.cat([self.x, y])",
        "parts['a'] = torch.cat([parts['a'], y])",
        "for k in parts:\n    parts[k] = torch.cat([parts[k], y])",
        "if y is None:\n    x = torch.cat([x, y])\nelse:\n    x = torch.cat([x, -y])",
    ],
)
def test_grows(body: str) -> None:
    assert grown(body)


@pytest.mark.parametrize(
    "body",
    [
        "z = torch.cat([x, y])",
        "y = torch.cat([y, y + 1])",
        "x = torch.cat([x, x])",
        "x = np.append(x, x)",
        "x = torch.cat([x[1:], y])",
        "x = torch.cat([x, y])[-10:]",
        "x = torch.zeros(1)\nx = torch.cat([x, y])",
        "self.x = torch.cat([self.x, y])\nself.x = self.x[1:]",
        "parts[y] = torch.cat([parts[y], x])",
        "for k in range(3):\n    z = torch.cat([y, y])",
        "model.append(x, y)",
    ],
)
def test_does_not_grow(body: str) -> None:
    assert not grown(body)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("x = torch.cat([x, y])", 1),
        ("x = torch.cat([x, y, y + 1], -1)", 2),
        ("x = torch.cat([y, x])", None),
        ("x = torch.cat([x, y])\nprint(x)", None),
        ("x = torch.cat([x, y])\ny.zero_()", None),
        ("x = torch.cat([x, y])\ny[0] = 1", None),
        ("x = torch.cat([x, y], out=x)", None),
        ("x = torch.cat([x, y], dim=y)", None),
        ("x = torch.cat([x, *y])", None),
        ("x = torch.hstack([x, y])", None),
    ],
)
def test_a_list_can_take_its_place(body: str, parts: int | None) -> None:
    (growth,) = grown(body)
    assert (len(growth.collected.parts) if growth.collected is not None else None) == parts


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ("x = torch.cat([x, y])", False),
        ("x = y if x is None else torch.cat([x, y])", False),
        ("self.x = torch.cat([self.x, y])", False),
        ("x = torch.cat([x, y])\nmodel(z, x=y).x", False),
        ("y = model(x)\nx = torch.cat([x, y])", True),
        ("x = torch.cat([x, model(x)])", True),
        ("self.x = torch.cat([self.x, y])\nmodel(self.x)", True),
    ],
)
def test_what_else_the_loop_does_with_the_tensor(body: str, is_read: bool) -> None:
    assert [growth.is_read for growth in grown(body)] == [is_read]
