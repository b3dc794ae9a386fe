"""Loaders in loops in loops, followed through variables and functions."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

PROGRAM = """
from torch.utils.data import DataLoader
from tqdm import tqdm

def run(step, loader):
    for batch in loader:
        step(batch)

def use(step, loader):
    step(loader)

def train(step, data, epochs):
    loader = DataLoader(data)
{body}
"""


def repeats(body: str) -> bool:
    """Return whether the loader is seen to be iterated over anew."""
    model = model_of(PROGRAM.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    made = next(call for call in model.nodes(cst.Call) if model.callee(call) == "torch.utils.data.DataLoader")
    return model.epochs.repeating(made) is not None


@pytest.mark.parametrize(
    "body",
    [
        "for e in range(epochs):\n    for x in loader:\n        step(x)",
        "while step():\n    for i, x in enumerate(tqdm(loader)):\n        step(x)",
        "for e in range(epochs):\n    for x, y in zip(loader, data):\n        step(x)",
        "for e in range(epochs):\n    run(step, loader)",
        "for e in range(epochs):\n    run(loader=loader, step=step)",
        "def epoch():\n    for x in loader:\n        step(x)\nfor e in range(epochs):\n    epoch()",
    ],
)
def test_iterated_in_a_loop(body: str) -> None:
    assert repeats(body)


@pytest.mark.parametrize(
    "body",
    [
        "for x in loader:\n    step(x)",
        "for e in range(1):\n    for x in loader:\n        step(x)",
        "for e in range(epochs):\n    step(loader)",
        "for e in range(epochs):\n    use(step, loader)",
        "for e in range(epochs):\n    len(loader)",
        "run(step, loader)",
        "if step:\n    loader = data\nfor e in range(epochs):\n    for x in loader:\n        step(x)",
        "for e in range(epochs):\n    for x in loader.dataset:\n        step(x)",
    ],
)
def test_not_seen_to_be_iterated_again(body: str) -> None:
    assert not repeats(body)


@pytest.mark.parametrize(
    ("body", "iterated"),
    [
        ("for x in loader:\n    step(x)", True),
        ("run(step, loader)", True),
        ("step(loader)", False),
        ("loader.dataset = data", False),
    ],
)
def test_iterated_at_all(body: str, iterated: bool) -> None:
    model = model_of(PROGRAM.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    made = next(call for call in model.nodes(cst.Call) if model.callee(call) == "torch.utils.data.DataLoader")
    assert model.epochs.iterated(made) is iterated


ATTRIBUTE = """
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, data):
        self.loader = DataLoader(data)

    def epoch(self):
        for batch in self.loader:
            print(batch)

    def run(self, epochs):
        {run}
"""


@pytest.mark.parametrize(
    ("run", "repeated"),
    [
        ("for _ in range(epochs): self.epoch()", True),
        ("self.epoch()", False),
        ("self.loader = []\n        for _ in range(epochs): self.epoch()", False),
    ],
)
def test_an_attribute_is_followed_only_if_asked(run: str, repeated: bool) -> None:
    model = model_of(ATTRIBUTE.format(run=run))
    made = next(call for call in model.nodes(cst.Call) if model.callee(call) == "torch.utils.data.DataLoader")
    assert model.epochs.repeating(made) is None
    assert (model.epochs.repeating(made, through_attributes=True) is not None) is repeated


RETURNED = """
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, model, data):
        self.data = data

    def run(self, epochs):
        for _ in range(epochs):
            for batch in self.data:
                print(batch)

def make(data):
    {make}

def main(data):
    {use}
"""


@pytest.mark.parametrize(
    ("make", "use", "repeated"),
    [
        ("return DataLoader(data)", "Trainer(data, make(data)).run(3)", True),
        ("loader = DataLoader(data)\n    return loader", "Trainer(data=make(data), model=data).run(3)", True),
        ("return DataLoader(data)", "loader = make(data)\n    Trainer(1, loader).run(3)", True),
        ("return DataLoader(data)", "for _ in data:\n        for x in make(data): print(x)", True),
        ("return DataLoader(data)", "Trainer(make(data), data).run(3)", False),
        ("return DataLoader(data)", "Unknown(1, make(data)).run(3)", False),
        ("return data, DataLoader(data)", "Trainer(1, make(data)).run(3)", False),
        ("return DataLoader(data)", "for x in make(data): print(x)", False),
    ],
)
def test_what_a_function_returns_is_followed_only_if_asked(make: str, use: str, repeated: bool) -> None:
    model = model_of(RETURNED.format(make=make, use=use))
    made = next(call for call in model.nodes(cst.Call) if model.callee(call) == "torch.utils.data.DataLoader")
    assert model.epochs.repeating(made) is None
    assert (model.epochs.repeating(made, through_attributes=True) is not None) is repeated
