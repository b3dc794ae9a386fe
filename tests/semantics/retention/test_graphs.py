"""What loops over steps keep with its graph."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

PROGRAM = """
import torch

def train(model, loader, optimizer, criterion, accelerator, loss_scaler):
    total, items, logs = 0.0, [], {{}}
    step = 0
    for i, (x, y) in enumerate(loader):
        step += 1
        output = model(x)
        loss = criterion(output, y)
{step}
        optimizer.step()
{body}
"""


def kept(body: str, step: str = "loss.backward()") -> bool:
    """Return whether something in a loop body keeps graphs beyond a complete step."""
    indented = ["\n".join(f"        {line}" for line in text.splitlines()) for text in (step, body)]
    model = model_of(PROGRAM.format(step=indented[0], body=indented[1]))
    nodes = [*model.nodes(cst.AugAssign), *model.nodes(cst.Assign), *model.nodes(cst.Call)]
    found = [model.retentions.retention(node) for node in nodes]
    return any(f is not None and f.step_is_complete and not f.is_remade and not f.is_backpropagated for f in found)


@pytest.mark.parametrize(
    "body",
    [
        "total += loss",
        "total = loss * 2 + total",
        "total = 0.9 * total + 0.1 * loss",
        "total += loss.mean().float()",
        "items.append(loss)",
        "items += [loss]",
        "items.append({'loss': loss})",
        "items.append(output)",
        "logs['loss'] += loss",
        "items[i] = loss",
        "logs[step] = loss",
        "logs[f'step {step}'] = {'loss': loss}",
        "if x is None:\n    total = 0\ntotal += loss",
    ],
)
def test_keeps(body: str) -> None:
    assert kept(body)


@pytest.mark.parametrize(
    "body",
    [
        "items[0] = loss",
        "logs['loss'] = loss",
        "logs[0, i] = loss.detach()",
        "for k in range(3):\n    logs[k] = loss",
        "total += loss.item()",
        "total += loss.item() * len(output)",
        "total += len(output)",
        "total += loss.detach()",
        "total += float(loss)",
        "items.append(y)",
        "items.append(str(loss))",
        "items.append(loss.detach().mean())",
        "loss = loss.detach()\nitems.append(loss)",
        "total = 0\ntotal += loss",
        "items.append(loss)\nitems.clear()",
        "total -= loss",
        "with torch.no_grad():\n    total += loss",
        "output.append(loss, 1)",
    ],
)
def test_keeps_nothing(body: str) -> None:
    assert not kept(body)


@pytest.mark.parametrize(
    "step",
    [
        "loss.backward()",
        "(loss / 4).backward()",
        "scaled = loss / 4\nscaled.backward()",
        "accelerator.backward(loss)",
        "accelerator.backward(loss=loss)",
        "loss_scaler(loss, optimizer)",
        "whole = loss + output.mean()\nwhole.backward()",
        "with accelerator.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()",
        "torch.autograd.backward(loss)",
        "gradients = torch.autograd.grad(loss, x)",
    ],
)
def test_knows_the_step(step: str) -> None:
    assert kept("total += loss", step)


@pytest.mark.parametrize("step", ["pass", "y.backward()", "total.backward()", "(total + 1).backward()"])
def test_waits_for_a_complete_step(step: str) -> None:
    assert not kept("total += loss", step)
