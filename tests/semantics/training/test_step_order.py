"""What training steps do, in order."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import calls, model_of
from torchlint.semantics.training.step_order import Act

PROGRAM = """
import torch
import helpers
from torch.nn.utils import clip_grad_norm_

def compute(model, x):
    return model(x).mean()

def differentiate(model, x):
    compute(model, x).backward()

def train(model, loader, optimizer, scheduler, scaler, engine):
    for x in loader:
{body}
"""


def acts(body: str) -> list[Act]:
    """Return what the loop with this body does."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    model = model_of(PROGRAM.format(body=lines))
    return [event.act for event in model.steps.events(model.nodes(cst.For)[0])]


@pytest.mark.parametrize(
    ("line", "act"),
    [
        ("loss.backward()", Act.BACKWARD),
        ("scaler.scale(loss).backward()", Act.BACKWARD),
        ("optimizer.zero_grad()", Act.CLEAR),
        ("optimizer.step()", Act.UPDATE),
        ("scaler.step(optimizer)", Act.UPDATE),
        ("scaler.unscale_(optimizer)", Act.UNSCALE),
        ("scheduler.step()", Act.SCHEDULE),
        ("clip_grad_norm_(model.parameters(), 1.0)", Act.CLIP),
        ("optimizer.step(closure)", Act.OTHER),
        ("engine.backward(loss)", Act.OTHER),
        ("torch.autograd.grad(loss, x)", Act.OTHER),
        ("helpers.compute(model, x)", Act.OTHER),
        ("engine.compute(x)", Act.OTHER),
        ("differentiate(model, x)", Act.OTHER),
        ("for part in x: part.backward()", Act.OTHER),
        ("model.weight.grad = x", Act.OTHER),
        ("model.weight.grad.data.copy_(x)", Act.OTHER),
    ],
)
def test_acts(line: str, act: Act) -> None:
    assert acts(line) == [act]


@pytest.mark.parametrize(
    "line",
    [
        "loss = compute(model, x.cuda()).float()",
        "print('{}'.format(loss.item()))",
        "scaler.update()",
        "model.train()",
        "x.unknown.sum().item()",
        "print(model.weight.grad.norm())",
        "for part in x: print(part)",
        "later = lambda: loss.backward()",
    ],
)
def test_what_does_nothing_to_gradients(line: str) -> None:
    assert acts(line) == []


def preceding(body: str) -> list[tuple[Act, bool]]:
    """Return what precedes the clip in a loop with this body."""
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    clip = next(c for c in model.nodes(cst.Call) if model.callee(c) == "torch.nn.utils.clip_grad_norm_")
    event = model.steps.around(clip)
    assert event is not None
    return [(earlier.act, always) for earlier, always in model.steps.preceding(event)]


def test_the_pass_before_comes_before_this_one() -> None:
    body = "loss.backward()\nclip_grad_norm_(p, 1)\noptimizer.step()\noptimizer.zero_grad()"
    assert preceding(body) == [(Act.BACKWARD, True), (Act.CLEAR, True), (Act.UPDATE, True)]


def test_what_stands_in_a_branch_may_not_happen() -> None:
    body = "with torch.no_grad():\n    loss.backward()\nif x:\n    optimizer.step()\nclip_grad_norm_(p, 1)"
    assert preceding(body) == [(Act.UPDATE, False), (Act.BACKWARD, True)]


def test_the_other_branch_is_left_out() -> None:
    body = "loss.backward()\nif x:\n    optimizer.step()\nelse:\n    clip_grad_norm_(p, 1)"
    assert preceding(body) == [(Act.BACKWARD, True)]


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("helpers.log('step', 3)", False),
        ("helpers.reset(model)", True),
        ("helpers.reset(optimizer)", True),
        ("engine.run(3)", True),
        ("differentiate(model, x)", True),
        ("model.inference(x)", False),
        ("model.train_step(x)", True),
    ],
)
def test_what_may_drop_gradients(line: str, may: bool) -> None:
    model = model_of(PROGRAM.format(body=f"        {line}"))
    events = model.steps.events(model.nodes(cst.For)[0])
    assert [model.steps.may_clear(event) for event in events] == [may]


def test_an_event_is_found_by_its_call() -> None:
    model = model_of(PROGRAM.format(body="        loss.backward()"))
    found = model.steps.around(calls(model, "backward")[1])
    assert found is not None
    assert found.act is Act.BACKWARD
    assert model.steps.following(found) == []
