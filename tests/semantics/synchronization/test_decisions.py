"""What becomes of values that the host reads."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import calls, model_of
from torchlint.semantics.synchronization.decisions import Decisions

PROGRAM = """
import torch
import torch.distributed as dist

def run(x, lengths, mask, signal, batches):
    for batch in batches:
{body}
"""


def read_in(body: str) -> tuple[cst.Call, Decisions]:
    """Return the only read of a body, and what follows reads."""
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    return calls(model, "item")[0], model.decisions


@pytest.mark.parametrize(
    "body",
    [
        "y = x[: lengths.max().item()]",
        "y = x[..., int(lengths[0].item()) + 1 :]",
        "n = lengths.max().item()\ny = torch.arange(n, device=x.device)",
        "n = int(lengths.max().item())\ny = torch.zeros(len(x), n)",
        "y = torch.zeros((2, lengths.max().item()))",
        "y = x.view(-1, lengths.max().item())",
        "for i in range(lengths.max().item()): print(i)",
    ],
)
def test_sizes(body: str) -> None:
    call, decisions = read_in(body)
    assert decisions.sizes(call)


@pytest.mark.parametrize(
    "body",
    [
        "y = x[lengths[0].item()]",
        "total = lengths.sum().item()\nprint(total)",
        "y = torch.full((2,), lengths.max().item())",
        "y = torch.tensor(lengths.max().item())",
        "n = lengths.max().item()\nn = 3\ny = torch.zeros(n)",
        "n, m = lengths.max().item(), 1\nprint(m)",
    ],
)
def test_no_sizes(body: str) -> None:
    call, decisions = read_in(body)
    assert not decisions.sizes(call)


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("dist.broadcast(signal, src=0)\nif signal.item() == 0:\n    break", True),
        ("dist.recv(signal, 0)\nif not signal.item(): return", True),
        ("dist.broadcast(signal, src=0)\nprint(signal.item())", False),
        ("dist.broadcast(signal, src=0)\nif signal.item() == 0:\n    print(signal)", False),
        ("dist.broadcast(x, src=0)\nif signal.item() == 0:\n    break", False),
        ("dist.all_reduce(signal)\nif signal.item() > 10:\n    break", False),
    ],
)
def test_the_word_of_another_process(body: str, ends: bool) -> None:
    call, decisions = read_in(body)
    assert decisions.decides(call) is ends


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("if x.item() > 1:\n    print(x.item())", True),
        ("if x > 1 and batch:\n    if batch:\n        pass\n    print(x.item())", True),
        ("if x > 1:\n    pass\nelse:\n    print(x.item())", False),
        ("if torch.isnan(x):\n    print(x.item())", True),
        ("if not x:\n    print(x.item())", True),
        ("if x is not None:\n    print(x.item())", False),
        ("if x.shape[0] > 1 and x.numel() and len(x):\n    print(x.item())", False),
        ("if torch.is_tensor(x) or isinstance(x, torch.Tensor):\n    print(x.item())", False),
        ("if lengths.item() > 1:\n    print(x.item())", False),
        ("if batch:\n    print(x.item())", False),
        ("if x > 1:\n    for part in x:\n        print(x.item())", False),
    ],
)
def test_what_a_test_has_looked_at_before(body: str, asked: bool) -> None:
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    call = calls(model, "item")[-1]
    assert isinstance(call.func, cst.Attribute)
    assert model.decisions.is_asked_before(call.func.value, call) is asked


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("while x.item() > 1:\n    pass", True),
        ("while True:\n    print(x.item())", False),
        ("if x.item() > 1:\n    break", True),
        ("if batch and x.item() > 1:\n    return", True),
        ("if x.item() > 1:\n    print(1)", False),
        ("if batch:\n    print(x.item())\n    break", False),
        ("print(x.item())", False),
    ],
)
def test_whether_a_loop_ends_by_a_value(body: str, asked: bool) -> None:
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    call = calls(model, "item")[-1]
    assert model.decisions.is_asked_by_loop(call, model.tree.module) is asked


WITHIN = """
import torch

def f(xs: list[torch.Tensor]):
    for x in xs:
        i = 0
        while x[i].item() > 1:
            {body}
"""


@pytest.mark.parametrize(("body", "asked"), [("i += 1", False), ("x = x * 0.5", True)])
def test_a_loop_within_a_loop_does_not_end_it(body: str, asked: bool) -> None:
    model = model_of(WITHIN.format(body=body))
    (call,), (outer,), (inner,) = calls(model, "item"), model.nodes(cst.For), model.nodes(cst.While)
    assert model.decisions.is_asked_by_loop(call, outer) is asked
    assert model.decisions.is_asked_by_loop(call, inner)
