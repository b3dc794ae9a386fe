"""A case: a small real program with one anti-pattern in it, read as text and never imported here."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from typing import Any

CONTROL = "self_check"
"""The program that is compared with itself, to show what the method says when there is nothing to see."""

NEEDS = frozenset(
    ("accelerator", "cuda", "pinned-memory", "cudnn", "two-cuda-devices", "two-cores", "numpy", "google-drive")
)


class Criterion(str, Enum):
    """What it takes to call the outputs of two programs equal."""

    BITWISE = "bitwise"
    TOLERANCE = "tolerance"
    DISTRIBUTION = "distribution"


class Quantity(str, Enum):
    """What a fix is meant to save."""

    TIME = "time"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Case:
    """One program as shipped: ``setup(device)`` gives a state, ``step(state)`` works on it and gives outputs."""

    code: str
    name: str
    title: str
    """The first line of the program's docstring."""

    source: str
    by_hand: str | None
    """The fixed program, where no fix can be had from the rule."""

    criterion: Criterion
    why: str
    """Why outputs may differ in this way; empty when they must be bitwise equal."""

    tolerance: float
    """The largest difference, relative to the largest value of the same output."""

    quantity: Quantity
    needs: tuple[str, ...]
    """What the device must have for the effect to be seen; some of NEEDS."""

    compared_steps: int
    """Over how many steps the outputs are compared."""

    profiles: bool = False
    """Whether the program runs a profiler itself: nothing is counted then, since profilers do not nest."""


class CaseError(Exception):
    """A case file is malformed."""


@cache
def cases() -> tuple[Case, ...]:
    """Return all shipped cases, sorted by code."""
    folder = resources.files("torchlint.harness").joinpath("cases")
    texts = {
        entry.name.removesuffix(".py"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }
    originals = [stem for stem in texts if not stem.endswith("_fixed") and stem != CONTROL]
    found = [parse_case(stem, texts[stem], texts.get(f"{stem}_fixed")) for stem in originals]
    return tuple(sorted(found, key=lambda case: case.code))


@cache
def control() -> Case:
    """Return the case that has nothing to fix."""
    text = resources.files("torchlint.harness").joinpath("cases").joinpath(f"{CONTROL}.py").read_text(encoding="utf-8")
    return parse_case(CONTROL, text, None)


def parse_case(stem: str, source: str, by_hand: str | None) -> Case:
    """Return the case that a program's text declares in its literal ``CASE``.

    Raises:
        CaseError: it declares none, or an impossible one.
    """
    tree = ast.parse(source)
    declared = _declaration(tree)
    if declared is None:
        raise CaseError(f"{stem}: no literal CASE")
    try:
        case = Case(
            code=declared.pop("code"),
            name=stem.replace("_", "-"),
            title=(ast.get_docstring(tree) or "").partition("\n")[0],
            source=source,
            by_hand=by_hand,
            criterion=Criterion(declared.pop("equal")),
            why=declared.pop("why", ""),
            tolerance=declared.pop("tolerance", 0.0),
            quantity=Quantity(declared.pop("quantity", "time")),
            needs=tuple(declared.pop("needs", "").split()),
            compared_steps=declared.pop("compared_steps", 3),
            profiles=declared.pop("profiles", False),
        )
    except (KeyError, ValueError) as error:
        raise CaseError(f"{stem}: {error}") from error
    problems = [f"unknown entry {key!r}" for key in declared]
    problems += ["no docstring"] * (not case.title)
    problems += [f"unknown need {need!r}" for need in case.needs if need not in NEEDS]
    problems += ["must say why"] * (case.criterion is not Criterion.BITWISE and not case.why)
    problems += ["needs a tolerance"] * ((case.criterion is Criterion.TOLERANCE) != (case.tolerance > 0))
    if problems:
        raise CaseError(f"{stem}: {'; '.join(problems)}")
    return case


def _declaration(tree: ast.Module) -> dict[str, Any] | None:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "CASE":
            value: dict[str, Any] = ast.literal_eval(statement.value)
            return value
    return None
