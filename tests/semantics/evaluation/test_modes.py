"""Training and evaluation mode, through loops and functions."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import calls, model_of

TRAINING = """
import torch
from torch import nn, optim
from elsewhere import unknown

def evaluate(network, loader):
    network.eval()
    with torch.no_grad():
        return sum(network(x) for x in loader)

def run(model, loader, val_loader, epochs):
    optimizer = optim.SGD({optimized}, lr=0.1)
    {before}
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            model(x).mean().backward()
            optimizer.step()
        {evaluates}
        {after}
"""


@pytest.mark.parametrize(
    ("before", "after", "optimized", "stays"),
    [
        ("pass", "pass", "model.parameters()", True),
        ("model.train()", "pass", "model.parameters()", True),
        ("pass", "pass", "[p for p in model.parameters()]", True),
        ("pass", "pass", "other.parameters()", False),
        ("pass", "model.train()", "model.parameters()", False),
        ("pass", "model.train(True)", "model.parameters()", False),
        ("pass", "model.train(False)", "model.parameters()", True),
        ("pass", "unknown(model)", "model.parameters()", False),
        ("pass", "unknown(epoch)", "model.parameters()", True),
        ("pass", "model.set_train_mode()", "model.parameters()", False),
        ("pass", "break", "model.parameters()", False),
    ],
)
@pytest.mark.parametrize("evaluates", ["evaluate(model, val_loader)", "print(evaluate(model, val_loader))"])
def test_eval_is_undone_or_not(before: str, after: str, optimized: str, stays: bool, evaluates: str) -> None:
    model = model_of(TRAINING.format(before=before, after=after, optimized=optimized, evaluates=evaluates))
    assert (model.modes.unresumed(calls(model, "eval")[0]) is not None) is stays


CLASS = """
from torch import nn

class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), {layer})

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net(0.1)
"""


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("nn.Dropout()", True),
        ("nn.Dropout(p)", True),
        ("nn.Dropout(0.0)", False),
        ("nn.Dropout(p=0)", False),
        ("nn.BatchNorm1d(2)", True),
        ("nn.SyncBatchNorm(2)", True),
        ("nn.TransformerEncoderLayer(2, 1)", True),
        ("nn.LayerNorm(2)", False),
        ("nn.ReLU()", False),
    ],
)
def test_layers_that_know_two_modes(layer: str, expected: bool) -> None:
    model = model_of(CLASS.format(layer=layer))
    assert [model.modes.differs(class_def) for class_def in model.nodes(cst.ClassDef)] == [expected, expected]
