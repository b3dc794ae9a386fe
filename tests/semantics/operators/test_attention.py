"""Attention that is written out, in every way of writing its products."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.model import Model
from torchlint.semantics.operators.attention import Attention, attention

PROGRAM = """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        self.over = nn.Softmax(dim=-1)
        self.drop = nn.Dropout(0.1)

    def forward(self, q, k, v, mask):
        {body}
"""


def found(body: str) -> tuple[list[Attention], Model]:
    """Return the attentions of a function body, given on one line."""
    model = model_of(PROGRAM.format(body=body))
    each = [attention(call, model) for call in model.nodes(cst.Call)]
    return [one for one in each if one is not None], model


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v",
        "return F.softmax(torch.matmul(q, k.transpose(-1, -2)), -1).matmul(v)",
        "return torch.matmul(q.matmul(k.mT).softmax(-1), v)",
        "return self.over(q @ k.swapaxes(-1, -2)) @ v",
        "return nn.Softmax(dim=-1)(q @ k.mT) @ v",
        "return F.softmax(q @ k.transpose(2, 3), dim=3) @ v",
        'return torch.einsum("bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).softmax(3), v)',
        'return torch.einsum("bhij,bhdj->bhdi", torch.einsum("bhdi,bhdj->bhij", q, k).softmax(-1), v)',
        'a = torch.einsum("... i d, ... j d -> ... i j", q, k).softmax(-1); return a @ v',
        "s = q @ k.mT; s = s / 8; s += mask; a = F.softmax(s, dim=-1); a = self.drop(a); return a @ v",
    ],
)
def test_written_out(body: str) -> None:
    attentions, model = found(body)
    (one,) = attentions
    assert [model.code(part) for part in (one.query, one.key, one.value)] == ["q", "k", "v"]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(q @ k, dim=-1) @ v",
        "return torch.softmax(q @ k.transpose(-2, -1), dim=-2) @ v",
        "return torch.softmax(q @ k.transpose(0, 1), dim=-1) @ v",
        "return v @ torch.softmax(q @ k.mT, dim=-1)",
        "return torch.softmax(q * k, dim=-1) @ v",
        'return torch.einsum("bhid,bhjd->bhij", q, k).softmax(2) @ v',
        'return torch.einsum("bhij,bhid->bhjd", torch.einsum("bhid,bhjd->bhij", q, k).softmax(3), v)',
        'return torch.einsum("bhid,bhjd->bhji", q, k).softmax(3) @ v',
        'return torch.einsum("bhid,bgjd->bhij", q, k).softmax(3) @ v',
        "a = torch.softmax(q @ k.mT, -1); return a @ v, a",
        "s = q @ k.mT; a = torch.softmax(s, -1); return a @ v + s",
    ],
)
def test_something_else(body: str) -> None:
    assert not found(body)[0]


def test_parts() -> None:
    attentions, model = found(
        "s = q @ k.mT / math.sqrt(8); s = s.masked_fill(mask, -1e9); a = self.drop(s.softmax(-1)); return a @ v"
    )
    (one,) = attentions
    assert [(model.code(number), divides) for number, divides in one.scales] == [("math.sqrt(8)", True)]
    assert [model.code(call) for call in one.dropouts] == ["self.drop(s.softmax(-1))"]
    assert [model.code(node) for node in one.others] == ["s.masked_fill(mask, -1e9)"]
    assert len(one.statements) == 3
    assert model.code(one.result) == "a @ v"


@pytest.mark.parametrize(
    ("scores", "is_attention"),
    [
        ("a @ b.mT", False),
        ("100.0 * a @ b.mT", False),
        ("a @ b.mT / 0.07", False),
        ("a @ b.mT * n", True),
        ("a @ b.mT / math.sqrt(a.size(-1))", True),
        ("(a @ b.mT).masked_fill(n, -1e9)", True),
        ("query @ b.mT", False),
        ("query @ key.mT", True),
        ("self.to_q(a) @ self.to_k(b).mT", True),
    ],
)
def test_two_products_of_unknown_tensors_need_another_sign(scores: str, is_attention: bool) -> None:
    model = model_of(
        f"import math, torch\ndef f(self, a, b, c, n, query, key):\n    return ({scores}).softmax(-1) @ c\n"
    )
    found = [attention(call, model) for call in model.nodes(cst.Call)]
    assert any(found) is is_attention
