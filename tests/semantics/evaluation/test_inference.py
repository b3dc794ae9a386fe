"""Forward passes of routines that evaluate."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.model import Model

PROGRAM = """
import torch
import torch.nn as nn

def {name}(model: nn.Module, x):
{body}
"""


def forward_passes(body: str, name: str = "routine") -> list[tuple[bool, bool, bool]]:
    """Return for each forward pass in a routine whether it is trained, frozen, or has gradients off or wanted."""
    model: Model = model_of(PROGRAM.format(name=name, body="\n".join(f"    {line}" for line in body.splitlines())))
    found = []
    for call in model.nodes(cst.Call):
        inference = model.inference.call(call)
        if inference is not None:
            gradients = model.evaluator.gradients
            found.append((inference.trains, inference.frozen, gradients.disabled(call) or gradients.wanted(call)))
    return found


@pytest.mark.parametrize(
    "body",
    [
        "model.eval()\nmodel(x)",
        "model.eval()\nmodel(x)\nmodel.train()",
        "model.eval()\nfor p in model.layer.parameters():\n    p.requires_grad = False\nmodel(x)",
        "model.eval()\nwith torch.set_grad_enabled(x is None):\n    model(x)",
    ],
)
def test_evaluates(body: str) -> None:
    assert forward_passes(body) == [(False, False, False)]


@pytest.mark.parametrize(
    "body",
    [
        "model.eval()\nmodel(x).sum().backward()",
        "model.eval()\nmodel.requires_grad_(False)\nmodel(x)",
        "model.eval()\nfor p in model.parameters():\n    p.requires_grad = False\nmodel(x)",
        "model.eval()\nfor n, p in model.named_parameters():\n    p.requires_grad_(False)\nmodel(x)",
        "model.eval()\nfreeze(model)\nmodel(x)",
        "model.eval()\nwith torch.no_grad():\n    model(x)",
        "model.eval()\nwith torch.enable_grad():\n    model(x)",
        "model.eval()\ntorch.set_grad_enabled(False)\nmodel(x)",
        "model.eval()\ntorch.autograd.set_grad_enabled(mode=False)\nmodel(x)",
        "model.eval()\nwith eval_mode(model):\n    model(x)",
    ],
)
def test_wants_no_decorator(body: str) -> None:
    assert all(any(answers) for answers in forward_passes(body))


@pytest.mark.parametrize(
    "body",
    [
        "model(x)",
        "model.train()\nmodel(x)",
        "model.eval()\nmodel(x)\nmodel.train()\ntorch.optim.SGD(x)",
        "model.eval()",
    ],
)
def test_does_not_evaluate(body: str) -> None:
    assert not forward_passes(body)


def test_a_name_needs_a_caller() -> None:
    assert not forward_passes("model(x)", "evaluate")
    assert not forward_passes("model(x)", "test_model")


SCRIPT = """
import torch
import torch.nn as nn
from models import Wrapped

def create(path):
    model = nn.Linear(2, 2)
    model.load_state_dict(torch.load(path))
    return Wrapped(model) if path else model

model = {make}
model({image})
"""


@pytest.mark.parametrize("make", ["nn.Linear(2, 2)", "create('weights.pt')"])
def test_a_script_that_leaves_the_loading_to_a_function_may_run_any_wrapper(make: str) -> None:
    model = model_of(SCRIPT.format(make=make, image="torch.rand(2)"))
    assert not any(model.inference.call(call) for call in model.nodes(cst.Call))


def test_a_script_that_loads_weights_itself_infers() -> None:
    text = SCRIPT.format(make="nn.Linear(2, 2)", image="torch.rand(2)")
    model = model_of(text.replace("model(torch", "model.load_state_dict(torch.load('weights.pt'))\nmodel(torch"))
    assert any(model.inference.call(call) for call in model.nodes(cst.Call))
