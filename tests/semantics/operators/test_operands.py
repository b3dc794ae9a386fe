"""Operations of torch, as functions and as methods, and tensors of whole numbers."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.operators.integral import is_whole
from torchlint.semantics.operators.operands import applied

HEAD = "import torch\nimport numpy as np\nimport torch.nn.functional as F\nx = torch.randn(3)\n"


def last_value(text: str):  # type: ignore[no-untyped-def]
    model = model_of(f"{HEAD}y = {text}\n")
    return model.nodes(cst.Assign)[-1].value, model


@pytest.mark.parametrize(
    ("text", "operand", "dim"),
    [
        ("torch.sum(x, 1)", "x", "1"),
        ("torch.sum(dim=1, input=x)", "x", "1"),
        ("x.sum(1)", "x", "1"),
        ("F.softmax(x + 1, dim=-1).sum()", "F.softmax(x + 1, dim=-1)", None),
    ],
)
def test_operand_and_arguments(text: str, operand: str, dim: str | None) -> None:
    node, model = last_value(text)
    found = applied(node, "sum", model, "dim")
    assert found is not None
    assert model.code(found.operand) == operand
    given = found.arguments.get("dim")
    assert (None if given is None else model.code(given)) == dim
    assert found.evidence is Evidence.PROVEN


@pytest.mark.parametrize("text", ["np.sum(x)", "torch.mean(x)", "torch.sum(*x)", "unknown.sum()", "sum(x)", "x.sum"])
def test_other_things_are_no_operation(text: str) -> None:
    node, model = last_value(text)
    assert applied(node, "sum", model) is None


@pytest.mark.parametrize(
    "text", ["torch.arange(5)", "x.long()", "7", "durations.float()", "node_degree", "n.num_steps"]
)
def test_whole_numbers(text: str) -> None:
    assert is_whole(*last_value(text))


@pytest.mark.parametrize(
    "text", ["x", "torch.arange(0, 1, 0.1)", "torch.arange(5, dtype=torch.float)", "lengthy", "1.5"]
)
def test_other_numbers(text: str) -> None:
    assert not is_whole(*last_value(text))
