"""What the host computes of fresh tensors and numbers alone."""

from __future__ import annotations

import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.tensors.host_values import HostValues

_START = """
import math
import torch

def f(x: torch.Tensor, n: int, given, beam_size):
    rows = torch.arange(n)
    rows = rows * 2
    mixed = torch.ones(3)
    mixed = mixed + x
    mark({})
"""


def _values(expression: str) -> tuple[HostValues, object]:
    model = model_of(_START.format(expression))
    return HostValues(model.evaluator), marked(model)[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.zeros(n)", True),
        ("rows", True),
        ("1 / (rows[:, None] + torch.ones(n, 3).T)", True),
        ("torch.stack([rows, rows.flip(0)])", True),
        ("rows.to(torch.float32)", True),
        ("rows == 3", True),
        ("mixed", False),
        ("rows * given", False),
        ("rows[given]", False),
        ("rows.to(given)", False),
        ("rows.nonzero()", False),
        ("torch.where(x > 0, rows, rows)", False),
        ("torch.zeros(n, device=given)", False),
        ("torch.tensor([1, n])", False),
        ("n * 2", False),
    ],
)
def test_fresh_tensors(expression: str, expected: bool) -> None:
    values, node = _values(expression)
    assert values.is_fresh(node) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n", True),
        ("-math.log(n) / len(given)", True),
        ("float('-inf')", True),
        ("beam_size", True),
        ("x.size(0) if n else x.shape[1]", True),
        ("max(n, 3)", True),
        ("max(given)", False),
        ("given", False),
        ("x", False),
        ("rows", False),
    ],
)
def test_numbers(expression: str, expected: bool) -> None:
    values, node = _values(expression)
    assert values.is_number(node) is expected  # type: ignore[arg-type]
