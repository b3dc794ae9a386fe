"""Graphs that one pass makes and uses up."""

from __future__ import annotations

import pytest

from tests.semantics.support import calls, model_of

PROGRAM = """
import torch
from torch import nn
from elsewhere import unknown

model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
data = torch.ones(3, 4, 2)

def run(given, flag):
    before = model(data[0])
    kept = []
    for x in data:
        {computed}
        loss.backward(retain_graph=True)
        {after}
    return None
"""


@pytest.mark.parametrize(
    ("computed", "after", "expected"),
    [
        ("loss = model(x).mean()", "pass", True),
        ("loss = torch.mean(model(x) ** 2) + 1", "pass", True),
        ("loss = model(x).mean() / 2; loss += 0.1 * model(x).sum()", "pass", True),
        ("hidden = model(x); loss = (hidden * hidden.detach()).mean()", "print(hidden.mean())", True),
        ("loss = model(x).mean()", "print(f'{loss}', loss.item(), float(loss))", True),
        ("loss = (model(x) * before).mean()", "pass", False),
        ("loss = (model(x) * given).mean()", "pass", False),
        ("loss = (model(x) * before.detach()).mean()", "pass", True),
        ("loss = unknown(model(x))", "pass", False),
        ("loss = model(x).mean()", "kept.append(loss)", False),
        ("loss = model(x).mean()", "unknown(loss)", False),
        ("loss = model(x).mean()", "return loss", False),
        ("loss = model(x).mean()", "other = loss", False),
        ("loss = model(*x).mean()", "pass", False),
    ],
)
def test_graphs_of_one_pass(computed: str, after: str, expected: bool) -> None:
    model = model_of(PROGRAM.format(computed=computed, after=after))
    (backward,) = calls(model, "backward")
    loss = backward.func.value  # type: ignore[attr-defined]
    assert model.local_graph.is_made_for(loss, backward) is expected


CLASSES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.state = nn.Linear(2, 2), None

    def forward(self, x):
        {body}
        return self.layer(x)

net = Net()
for x in torch.ones(3, 4, 2):
    net(x).mean().backward(retain_graph=True)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = x + 1", True),
        ("self.state = x", False),
        ("self.seen.append(x)", False),
        ("global last; last = x", False),
        ("self.buffer[0] = x", False),
    ],
)
def test_modules_that_keep_something(body: str, expected: bool) -> None:
    model = model_of(CLASSES.format(body=body))
    (backward,) = calls(model, "backward")
    assert model.local_graph.is_made_for(backward.func.value, backward) is expected  # type: ignore[attr-defined]
