"""How many kernels functions of pointwise operations take."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.operators.pointwise import kernels


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.tanh(x)", 1),
        ("return x.tanh() * 2 + 1", 3),
        ("return -torch.exp(x)", 2),
        ("return torch.where(x.exp() > 0, x, 0)", 3),
        ("y = torch.exp(x); y *= 2; return y", 2),
        ("c = math.sqrt(2) * 3; return torch.exp(x) * c", 2),
        ("return scale * 3 + 1 + torch.exp(x)", 2),
        ("return torch.exp(x).sum()", None),
        ("return linear(torch.exp(x))", None),
        ("print(x); return torch.exp(x)", None),
        ("y = torch.exp(x)", None),
        ("return torch.exp(x), 1", None),
        ("x[0] = 1; return torch.exp(x)", None),
    ],
)
def test_kernels(body: str, expected: int | None) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    model = model_of(f"import math\nimport torch\n\ndef run(x, scale, linear):\n{lines}")
    assert kernels(model.nodes(cst.FunctionDef)[0], model) == expected
