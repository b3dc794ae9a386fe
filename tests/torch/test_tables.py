"""The names that torchlint knows of torch are those of the torch that is installed."""

from __future__ import annotations

import random
from types import ModuleType

import numpy as np
import pytest
import torch

from torchlint.semantics.tables.names import NAMESAKES
from torchlint.semantics.tables.switches import ASSIGNED, CALLED, REFUSING, TELLING, WITHOUT_SWITCHES

IS_CURRENT = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 13)
pytestmark = pytest.mark.skipif(not IS_CURRENT, reason="the tables are those of torch 2.13")
ROOTS: dict[str, ModuleType] = {"torch": torch, "numpy": np, "random": random}


def thing(name: str) -> object:
    root, *parts = name.split(".")
    found: object = ROOTS[root]
    for part in parts:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("owner", sorted(set(ASSIGNED) - {"torch.backends.cuda.cufft_plan_cache"}))
def test_torch_has_every_switch(owner: str) -> None:
    for name in ASSIGNED[owner]:
        assert hasattr(thing(owner), name), f"{owner}.{name}"


@pytest.mark.parametrize("name", sorted(CALLED))
def test_what_is_called_is_a_function(name: str) -> None:
    assert callable(thing(name))


@pytest.mark.parametrize("owner", sorted(set(ASSIGNED) - REFUSING - {"torch.backends.cuda.cufft_plan_cache"}))
def test_another_attribute_is_added_without_a_word(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thing(owner), "no_such_switch", True, raising=False)


@pytest.mark.parametrize("owner", sorted(REFUSING))
def test_some_refuse_other_attributes(owner: str) -> None:
    with pytest.raises((AttributeError, AssertionError)):
        thing(owner).no_such_switch = True  # type: ignore[attr-defined]


@pytest.mark.parametrize("owner", sorted(WITHOUT_SWITCHES))
@pytest.mark.parametrize("name", sorted(TELLING))
def test_a_switch_is_in_one_place(owner: str, name: str) -> None:
    assert name in ASSIGNED.get(owner, frozenset()) or not hasattr(thing(owner), name)


@pytest.mark.parametrize("name", sorted(NAMESAKES))
def test_numpy_has_a_function_of_that_name(name: str) -> None:
    assert callable(thing(name))
    assert callable(thing(f"numpy.{name.removeprefix('torch.')}"))
