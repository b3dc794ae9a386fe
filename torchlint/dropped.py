"""Rules that were planned, turned out to be wrong, and will not come; their codes and names are not used again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dropped:
    """One rule that will not come."""

    code: str
    name: str
    meant: str
    """What it was to report."""

    why: str
    """What showed that this costs nothing, or that it cannot be told from what is right."""


DROPPED = (
    Dropped(
        "TL406",
        "compile-in-loop",
        "`torch.compile` of the same function or module on every step",
        "it compiles once all the same: for a function, a module, a lambda and a module made anew in each of a hundred "
        "steps torch 2.13 made one graph, for a closure over the number of the step two",
    ),
)
