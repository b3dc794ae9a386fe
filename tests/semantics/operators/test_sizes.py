"""Numbers that come from sizes, and shapes that the code writes down."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.operators.sizes import is_number, rank

HEAD = """
import math
import torch
from einops import rearrange

class Net(torch.nn.Module):
    def __init__(self, dim, heads):
        self.scale = (dim // heads) ** -0.5
        self.root = math.sqrt(dim)
        self.learned = torch.nn.Parameter(torch.ones(1))
        self.given = dim

    def forward(self, x, factor):
        rows, length, channels = x.shape
        half = length // 2
        {body}
"""


def value(body: str) -> tuple[cst.BaseExpression, object]:
    model = model_of(HEAD.format(body=body))
    return marked(model)[0], model


@pytest.mark.parametrize(
    "text",
    ["8", "-1.5", "self.scale", "self.root", "1 / self.root", "channels ** -0.5", "x.size(-1)", "x.shape[0] * 2"],
)
def test_numbers(text: str) -> None:
    node, model = value(f"mark({text})")
    assert is_number(node, model)


@pytest.mark.parametrize("text", ["self.learned", "self.given", "factor", "x", "x.shape", "x.sum()", "factor * 2", "y"])
def test_what_may_be_a_tensor_is_no_number(text: str) -> None:
    node, model = value(f"mark({text})")
    assert not is_number(node, model)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mark(x.view(rows, length, 2, 3))", 4),
        ("mark(x.view(rows, length, 2, 3).transpose(1, 2) * self.scale)", 4),
        ("mark(x.reshape(1, 2, 3, 4, 5).permute(2, 0, 3, 1, 4)[0])", 4),
        ("q, k = x.reshape(1, 2, 3, 4, 5).unbind(0); mark(k)", 4),
        ("q, k = x.reshape(2, 3, 4); mark(q)", 2),
        ("q, k = x.reshape(2, 3, 4).chunk(2, dim=-1); mark(q)", 3),
        ("q, k = (t.view(1, 2) for t in x); mark(k)", 2),
        ("q, k = map(lambda t: rearrange(t, 'b n (h d) -> b h n d', h=8), x.chunk(2)); mark(k)", 4),
        ("mark(rearrange(x, 'b n (h d) -> (b h) n d'))", 3),
        ("mark(rearrange(x, '... n d -> ... d n'))", None),
        ("mark(x.view(*x.shape[:-1], 2))", None),
        ("mark(x.view(x.shape))", None),
        ("mark(x)", None),
        ("mark(x.view(1, 2)[0:1])", None),
        ("q = x.view(1, 2) if half else x.view(1, 2, 3); mark(q)", None),
    ],
)
def test_ranks(body: str, expected: int | None) -> None:
    node, model = value(body)
    assert rank(node, model) == expected
