"""The names that torchlint knows of torch are those of the torch that is installed."""

from __future__ import annotations

import random
from types import ModuleType

import numpy as np
import pytest
import torch

from torchlint.semantics.tables.names import CANONICAL_NAMES, NAMESAKES
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


@pytest.mark.parametrize("name", sorted(name for name in CANONICAL_NAMES if name.startswith("torch.")))
def test_another_name_is_that_of_the_same_thing(name: str) -> None:
    if name == "torch.hub.tqdm":  # a stand-in of torch's own where tqdm is not installed
        assert callable(thing(name))
    else:
        assert thing(name) is thing(CANONICAL_NAMES[name])


@pytest.mark.parametrize("name", sorted(NAMESAKES))
def test_numpy_has_a_function_of_that_name(name: str) -> None:
    assert callable(thing(name))
    assert callable(thing(f"numpy.{name.removeprefix('torch.')}"))


TAKEN = {"take": (np.array([2, 0]),), "searchsorted": (np.array([0.3]),), "broadcast_to": ((2, 6),), "tile": ((2,),)}
TWO = frozenset(
    "arctan2 dot fmax fmin hypot inner isclose kron logaddexp logical_and logical_or maximum minimum".split()
)


@pytest.mark.parametrize("name", sorted(NAMESAKES))
def test_the_function_of_that_name_computes_the_same(name: str) -> None:
    last = name.removeprefix("torch.")
    row = np.array([0.7, 0.1, 0.4, 0.2, 0.5, 0.6])
    given: tuple[object, ...] = (np.sort(row) if last == "searchsorted" else row, *TAKEN.get(last, ()))
    given = (*given, row[::-1].copy()) if last in TWO else given
    if last in ("arange", "bincount"):
        given = (5,) if last == "arange" else (np.array([1, 0, 1]),)
    given = (row > 0.3, *given, 0.0) if last == "where" else given
    try:
        theirs = thing(f"numpy.{last}")(*given)  # type: ignore[operator]
        ours = thing(name)(*(torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in given))  # type: ignore[operator]
    except (TypeError, ValueError, IndexError, RuntimeError, np.linalg.LinAlgError):
        return  # it wants more arguments, or others: nobody takes it for the same without noticing
    assert isinstance(ours, torch.Tensor)
    assert np.allclose(np.asarray(theirs), ours.resolve_conj().numpy())
