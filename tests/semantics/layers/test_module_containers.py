"""Lists and dictionaries that objects keep, and what goes into them."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of
from torchlint.semantics.layers.module_containers import Container, container, is_trained

PROGRAM = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

class Plain(nn.Module):
    def forward(self, x):
        return x

class Net(nn.Module):
    def __init__(self, made):
        super().__init__()
        {body}
"""


def kept(body: str) -> tuple[Container | None, list[str]]:
    """Return the container that is assigned to ``self.parts``, and the code of what goes into it."""
    model = model_of(PROGRAM.format(body=body))
    for assign in model.nodes(cst.Assign):
        target = assign.targets[0].target
        if isinstance(target, cst.Attribute) and target.attr.value == "parts":
            found = container(assign, model)
            return found, [model.code(element) for element in found.elements] if found is not None else []
    raise AssertionError(body)


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        ("self.parts = [nn.Linear(1, 1), made]", ["nn.Linear(1, 1)", "made"]),
        ("self.parts = (made,)", ["made"]),
        ("self.parts = [Block() for _ in range(3)]", ["Block()"]),
        ("self.parts = [Block()] * 3", ["Block()"]),
        ("self.parts = []; self.parts.append(made)", ["made"]),
        ("self.parts = list(); self.parts += [made]; self.parts.extend([Block()])", ["Block()", "made"]),
        ("self.parts = []; self.parts.insert(0, made)", ["made"]),
        ("self.parts = {'a': made}; self.parts['b'] = Block()", ["made", "Block()"]),
        ("parts = [made]; parts.append(Block()); self.parts = parts", ["made", "Block()"]),
    ],
)
def test_elements(body: str, elements: list[str]) -> None:
    assert kept(body)[1] == elements


@pytest.mark.parametrize("body", ["self.parts = made", "self.parts = list(made)", "self.parts = made + [Block()]"])
def test_what_is_not_visible(body: str) -> None:
    assert kept(body)[0] is None


@pytest.mark.parametrize(
    ("element", "trained"),
    [
        ("nn.Linear(1, 1)", True),
        ("nn.Parameter(torch.ones(1))", True),
        ("nn.Sequential(nn.ReLU(), nn.Conv1d(1, 1, 1))", True),
        ("Block()", True),
        ("nn.ReLU()", False),
        ("Plain()", False),
        ("nn.Sequential(nn.ReLU())", False),
        ("nn.Linear", False),
        ("made", False),
        ("self.linear", False),
        ("nn.Linear(1, 1).weight", False),
    ],
)
def test_trained(element: str, trained: bool) -> None:
    model = model_of(PROGRAM.format(body=f"mark({element})"))
    call = next(c for c in model.nodes(cst.Call) if isinstance(c.func, cst.Name) and c.func.value == "mark")
    assert is_trained(call.args[0].value, model) is trained
