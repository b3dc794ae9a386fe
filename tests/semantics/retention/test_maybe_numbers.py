"""Which losses are a number, or None, on some way to where they are kept."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.retention.maybe_numbers import MaybeNumbers
from torchlint.semantics.values import Kind

PROGRAM = """
import torch

def penalty(x, weight=None, scale=0.0):
    if weight is None:
        return 0
    return (weight * x).sum()

def train(model, loader, criterion, a, b):
    kept = []
    loss = None
    extra = 0.0
    for i, x in enumerate(loader):
{body}
"""


def kinds(body: str) -> set[Kind]:
    """Return what the argument of the last ``kept.append`` may be instead of a tensor."""
    model = model_of(PROGRAM.format(body="\n".join(f"        {line}" for line in body.splitlines())))
    calls = [c for c in model.nodes(cst.Call) if model.code(c.func) == "kept.append"]
    return set(MaybeNumbers(model.evaluator).kinds(calls[-1].args[0].value))


@pytest.mark.parametrize(
    "body",
    [
        "extra = criterion(x)\nkept.append(extra)",
        "if a:\n    extra = criterion(x)\nif a:\n    kept.append(extra)",
        "if a:\n    extra = criterion(x)\nelse:\n    extra = 0\nif a:\n    kept.append(extra)",
        "if a:\n    extra = criterion(x)\nelse:\n    continue\nkept.append(extra)",
        "if a:\n    extra = criterion(x)\nkept.append(extra)\nextra.backward()",
        "if a:\n    extra = criterion(x)\n(extra / 2).backward()\nkept.append(extra)",
        "if a:\n    extra = criterion(x)\nscaler.scale(extra).backward()\nkept.append(extra)",
        "extra = 0\nfor p in model.parameters():\n    extra += criterion(p)\nkept.append(extra)",
        "extra = 0\nfor y in (x, a):\n    extra += criterion(y)\nkept.append(extra)",
        "extra = 0\nfor _, y in zip(range(3), loader):\n    extra += criterion(y)\nkept.append(extra)",
        "kept.append(sum(criterion(p) for p in model.parameters()))",
        "if a:\n    loss = criterion(x)\nif loss is not None:\n    kept.append(loss)",
        "if a:\n    loss = criterion(x)\nassert loss is not None\nkept.append(loss)",
        "if a:\n    loss = criterion(x)\nif not loss:\n    continue\nkept.append(loss)",
        "kept.append(penalty(x, a))",
        "extra = 0.5 * criterion(x)\nkept.append(extra)",
    ],
)
def test_always_a_tensor(body: str) -> None:
    assert not kinds(body)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("if a:\n    extra = criterion(x)\nkept.append(extra)", Kind.NUMBER),
        ("if a:\n    extra = criterion(x)\nif b:\n    kept.append(extra)", Kind.NUMBER),
        ("if a(i):\n    extra = criterion(x)\nif a(i):\n    kept.append(extra)", Kind.NUMBER),
        ("if a:\n    extra = criterion(x)\n    extra.backward()\nkept.append(extra)", Kind.NUMBER),
        ("if a:\n    extra = criterion(x)\nelse:\n    extra = 0\nkept.append(extra)", Kind.NUMBER),
        ("kept.append(extra)\nextra = criterion(x)", Kind.NUMBER),
        ("extra = criterion(x) if a else 0.0\nkept.append(extra)", Kind.NUMBER),
        ("extra = 0\nfor y in x:\n    if y:\n        extra += criterion(y)\nkept.append(extra)", Kind.NUMBER),
        ("extra = 0\nfor y in x:\n    extra += criterion(y)\nkept.append(extra)", Kind.NUMBER),
        ("extra = 0\nwhile a():\n    extra += criterion(x)\nkept.append(extra)", Kind.NUMBER),
        ("extra = 0\nfor y in x:\n    extra += criterion(y)\nkept.append(0.1 * extra / len(x))", Kind.NUMBER),
        ("kept.append(sum(criterion(y) for y in x))", Kind.NUMBER),
        ("kept.append(sum(criterion(p) for p in model.parameters() if a))", Kind.NUMBER),
        ("kept.append(penalty(x))", Kind.NUMBER),
        ("kept.append(0.1 * penalty(x))", Kind.NUMBER),
        ("if a:\n    loss = criterion(x)\nkept.append(loss)", Kind.NONE),
        ("try:\n    loss = criterion(x)\nexcept ValueError:\n    loss = None\nkept.append(loss)", Kind.NONE),
        ("if a:\n    extra = criterion(x)\nif extra is not None:\n    kept.append(extra)", Kind.NUMBER),
    ],
)
def test_maybe_none_or_a_number(body: str, kind: Kind) -> None:
    assert kinds(body) == {kind}
