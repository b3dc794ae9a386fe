"""Loops over parameters, and what they do."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.training.parameter_loops import Work


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("p, q in zip(a.parameters(), b.parameters())", "q.data.copy_(t * p.data + (1 - t) * q.data)", Work.AVERAGE),
        ("p, q in zip(a.parameters(), b.parameters())", "q.lerp_(p, t)", Work.AVERAGE),
        ("(_, p), (_, q) in zip(a.named_parameters(), b.named_parameters())", "q.mul_(t).add_(p)", Work.AVERAGE),
        ("p, q in zip(a.parameters(), b.parameters())", "p.data = q.data", Work.AVERAGE),
        ("p, q in zip(a.parameters(), b.parameters())", "q.data.copy_(f(p))", None),
        ("p, q in zip(a.parameters(), values)", "p.data.copy_(q)", None),
        ("p, q in zip(a.parameters(), b.parameters())", "print(p, q)", None),
        ("p in a.parameters()", "p.grad.clamp_(-1, 1)", Work.CLIP_GRADIENTS),
        ("name, p in a.named_parameters()", "p.grad.data.clamp_(-c, c)", Work.CLIP_GRADIENTS),
        ("p in a.parameters()", "p.data.clamp_(-0.01, 0.01)", Work.CLAMP),
        ("p in a.parameters()", "p.data.clamp_(f(p), 1)", None),
        ("p in a.parameters()", "p.data.add_(p.grad, alpha=-lr)", Work.UPDATE),
        ("p in a.parameters()", "p -= lr * p.grad", Work.UPDATE),
        ("p in a.parameters()", "p.data -= lr * q.grad", None),
        ("p in a.parameters()", "p.requires_grad = False", None),
        ("p in a.parameters()", "n += p.numel()", None),
        ("p in values", "p.grad.clamp_(-1, 1)", None),
    ],
)
def test_loops_are_told_apart(header: str, body: str, expected: Work | None) -> None:
    model = model_of(f"for {header}:\n    {body}\n")
    found = model.parameter_loops.find(model.nodes(cst.For)[0])
    assert (found.work if found is not None else None) is expected


def test_a_test_for_gradients_may_stand_around() -> None:
    model = model_of("for p in a.parameters():\n    if p.grad is not None:\n        p.grad.clamp_(-1, 1)\n")
    found = model.parameter_loops.find(model.nodes(cst.For)[0])
    assert found is not None
    assert found.work is Work.CLIP_GRADIENTS


def test_a_loop_that_does_more_is_none() -> None:
    model = model_of("for p in a.parameters():\n    p.grad.clamp_(-1, 1)\n    print(p)\n")
    assert model.parameter_loops.find(model.nodes(cst.For)[0]) is None
