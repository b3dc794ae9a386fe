"""Loops that evaluate inside a routine that trains."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

TRAINING = """
import torch
import torch.nn as nn

def routine(model: nn.Module, train_loader, val_loader, held_out: torch.utils.data.DataLoader, optimizer):
    for x in train_loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""


def evaluations(rest: str) -> list[str]:
    """Return the forward passes that evaluate in a routine that trains first."""
    model = model_of(TRAINING + "\n".join(f"    {line}" for line in rest.splitlines()))
    found = ((call, model.inference.call(call)) for call in model.nodes(cst.Call))
    return [model.code(call) for call, one in found if one is not None and one.is_part and not one.trains]


@pytest.mark.parametrize(
    "rest",
    [
        "for v in val_loader:\n    print(model(v))",
        "for number, v in enumerate(val_loader):\n    print(model(v))",
        "model.eval()\nfor v in held_out:\n    print(model(v))",
        "model.train()\nmodel.eval()\nwith open('log') as log:\n    for v in held_out:\n        log.write(model(v))",
    ],
)
def test_evaluates(rest: str) -> None:
    assert evaluations(rest) == ["model(v)"]


@pytest.mark.parametrize(
    "rest",
    [
        "for v in held_out:\n    print(model(v))",
        "model.eval()\nmodel.train()\nfor v in held_out:\n    print(model(v))",
        "def other():\n    model.eval()\nfor v in held_out:\n    print(model(v))",
        "other.eval()\nfor v in held_out:\n    print(model(v))",
        "for v in val_loader:\n    model(v).mean().backward()",
        "for v in val_loader:\n    optimizer.zero_grad()\n    print(model(v))",
        "for v in val_loader:\n    print(model(v))\n    break",
        "total = 0\nfor v in val_loader:\n    total = total + model(v).mean()\ntotal.backward()",
        "total = 0\nfor v in val_loader:\n    total += model(v).mean()\nhalf = total / 2\nhalf.backward()",
        "model.eval()\nprint(model(1))",
    ],
)
def test_does_not_evaluate(rest: str) -> None:
    assert evaluations(rest) == []
