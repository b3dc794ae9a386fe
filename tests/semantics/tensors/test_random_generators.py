"""Generators that objects and modules keep, and the calls that draw from them."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import model_of

CLASS = """
import random
import numpy as np
import torch

shared = random.Random(0)
{module}

class Items:
    def __init__(self, seed, other):
        {start}

    def draw(self, index):
        return {draw}

    def other(self):
        {later}
"""


def carried(start: str, later: str = "pass", draw: str = "None", module: str = "") -> list[tuple[str, bool, int]]:
    """Return what a class carries: the name, whether it is seeded anew, how many calls of a method draw from it."""
    model = model_of(CLASS.format(start=start, later=later, draw=draw, module=module))
    class_def = model.nodes(cst.ClassDef)[0]
    calls = [c for c in model.nodes(cst.Call) if getattr(model.enclosing_function(c), "name", None) is not None]
    drawing = [c for c in calls if model.enclosing_function(c).name.value == "draw"]  # type: ignore[union-attr]
    return [
        (found.name, found.anew, sum(model.random_generators.draws(call, found) for call in drawing))
        for found in model.random_generators.carried(class_def)
    ]


@pytest.mark.parametrize(
    ("start", "draw"),
    [
        ("self.rng = np.random.default_rng(seed)", "self.rng.normal()"),
        ("self.rng = random.Random()", "self.rng.choice([1, 2])"),
        ("self.rng = torch.Generator().manual_seed(seed)", "torch.rand(3, generator=self.rng)"),
        ("self.rng = np.random.Generator(np.random.PCG64(seed))", "self.rng.integers(3)"),
    ],
)
def test_made_at_the_start_and_drawn_from(start: str, draw: str) -> None:
    assert carried(start, draw=draw) == [("rng", False, 1)]


@pytest.mark.parametrize("start", ["rng = random.Random()", "self.rng = seed", "self.rng = other or random.Random()"])
def test_not_carried(start: str) -> None:
    assert carried(start) == []


@pytest.mark.parametrize(
    "later", ["self.rng = random.Random(1)", "self.rng.seed(1)", "[each.rng.seed(1) for each in [self]]"]
)
def test_made_or_seeded_anew(later: str) -> None:
    assert carried("self.rng = random.Random(seed)", later) == [("rng", True, 0)]


@pytest.mark.parametrize("draw", ["self.rng.device", "self.other.random()", "random.random()", "self.rng.random"])
def test_no_draw(draw: str) -> None:
    assert carried("self.rng = random.Random(seed)", draw=draw) == [("rng", False, 0)]


@pytest.mark.parametrize(
    ("draw", "module", "name"),
    [
        ("shared.random()", "", "shared"),
        ("torch.rand(1, generator=masks)", "masks = torch.Generator().manual_seed(0)", "masks"),
        ("shared.random()", "shared = random.Random(1)", ""),
        ("shared.random()", "def start(): shared.seed(1)", ""),
        ("shared.random()", "shared.seed(1)", "shared"),
        ("random.random()", "", ""),
        ("unknown.random()", "unknown = make()", ""),
    ],
)
def test_of_the_module(draw: str, module: str, name: str) -> None:
    model = model_of(CLASS.format(start="pass", later="pass", draw=draw, module=module))
    calls = [call for call in model.nodes(cst.Call) if model.code(call) == draw]
    assert [model.random_generators.of_module(call) for call in calls] == [name]


@pytest.mark.parametrize(
    ("draw", "drawn"), [("np.random.rand()", True), ("np.random.seed(1)", False), ("random.random()", False)]
)
def test_of_numpy(draw: str, drawn: bool) -> None:
    model = model_of(CLASS.format(start="pass", later="pass", draw=draw, module=""))
    call = next(call for call in model.nodes(cst.Call) if model.code(call) == draw)
    assert model.random_generators.of_numpy(call) is drawn
