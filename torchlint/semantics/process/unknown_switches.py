"""Which switch an assignment to a name that torch does not know was meant for."""

from __future__ import annotations

from typing import NamedTuple

from torchlint.semantics.process.switches import ENVIRONMENT
from torchlint.semantics.tables.switches import (
    ASSIGNED,
    CALLED,
    HOMES,
    OTHER_NAMES,
    OTHER_VARIABLES,
    REFUSING,
    TELLING,
    VARIABLES,
    WITHOUT_SWITCHES,
)
from torchlint.spelling import misspelt


class Meant(NamedTuple):
    """What was meant by a name that is no switch."""

    names: tuple[str, ...]
    """The qualified names of the switches that it can have been, the likeliest first."""

    is_called: bool = False
    """Whether it is a function, which a value replaces where it was to be called."""

    raises: bool = False
    """Whether the assignment raises."""


def meant(name: str) -> Meant | None:
    """Return what an assignment to a qualified name was meant for, None where it is right, or nobody knows."""
    if name in CALLED:
        return Meant((name,), is_called=True)
    if name.startswith(f"{ENVIRONMENT}["):
        variable = misspelt(name[len(ENVIRONMENT) + 1 : -1], VARIABLES, OTHER_VARIABLES)
        return Meant((f"{ENVIRONMENT}[{variable}]",)) if variable else None
    owner, _, attribute = name.rpartition(".")
    known = ASSIGNED.get(owner, frozenset())
    if attribute in known:
        return None
    if attribute in TELLING and owner in WITHOUT_SWITCHES:
        homes = [home for home in HOMES if attribute in ASSIGNED[home]]
        below = [home for home in homes if home.startswith(f"{owner}.")]
        found = below if len(below) == 1 else homes
        return Meant(tuple(f"{home}.{attribute}" for home in found))
    switch = misspelt(attribute, known, OTHER_NAMES)
    return Meant((f"{owner}.{switch}",), raises=owner in REFUSING) if switch else None
