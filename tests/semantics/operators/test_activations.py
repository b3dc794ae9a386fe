"""The last activation of a value, and what losses are given."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.operators.activations import activation, fed

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.head = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Softmax(dim=1)))

    def forward(self, x):
        x = self.layer(x)
        return F.softmax(x, dim=1)

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        probabilities = self.net(x)
        return probabilities.squeeze(1)

class Both(nn.Module):
    def forward(self, x):
        if self.training:
            return x
        return torch.sigmoid(x)

x = torch.randn(3, 4)
net, both, sigmoid = Net(), Both(), nn.Sigmoid()
main = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()).to("cuda")
main = main.eval()
given = torch.softmax(x, 1)
"""


@pytest.mark.parametrize(
    ("text", "name", "direct"),
    [
        ("F.softmax(x, 1)", "softmax", True),
        ("x.sigmoid()", "sigmoid", True),
        ("torch.log_softmax(x, 1).view(-1)", "log_softmax", False),
        ("given", "softmax", False),
        ("sigmoid(x)", "sigmoid", True),
        ("nn.Softmax(dim=1)(x)", "softmax", True),
        ("main(x)", "sigmoid", False),
        ("net(x)", "softmax", False),
        ("Inner()(x)", "softmax", False),
        ("Net().head(x)", None, None),
        ("both(x)", None, None),
        ("x", None, None),
        ("F.softmax(x, 1) * 2", None, None),
        ("F.relu(x)", None, None),
        ("unknown(x)", None, None),
    ],
)
def test_last_activation(text: str, name: str | None, direct: bool | None) -> None:
    model = model_of(f"{HEAD}mark({text})\n")
    found = activation(marked(model)[0], model)
    assert (found.name if found else None, found.direct if found else None) == (name, direct)


def test_the_class_is_named() -> None:
    model = model_of(f"{HEAD}mark(Inner()(x))\n")
    found = activation(marked(model)[0], model)
    assert found is not None
    assert isinstance(found.owner, cst.ClassDef)
    assert found.owner.name.value == "Inner"


def test_a_name_that_stands_for_itself_has_none() -> None:
    model = model_of("def run(loader):\n    p = 0\n    for x in loader:\n        p = p.view(1)\n    mark(p)\n")
    assert activation(marked(model)[0], model) is None


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("F.cross_entropy(x, y)", "cross_entropy"),
        ("F.nll_loss(target=y, input=x)", "nll_loss"),
        ("criterion(x, y)", "binary_cross_entropy"),
        ("nn.BCEWithLogitsLoss()(x, y)", "binary_cross_entropy_with_logits"),
        ("F.mse_loss(x, y)", None),
        ("unknown(x, y)", None),
        ("F.cross_entropy(*both)", None),
    ],
)
def test_losses(text: str, loss: str | None) -> None:
    model = model_of(f"{HEAD}criterion = nn.BCELoss()\nmark({text})\n")
    call = marked(model)[0]
    assert isinstance(call, cst.Call)
    found = fed(call, model)
    assert (found.loss if found else None) == loss
    assert found is None or model.code(found.predictions) == "x"
