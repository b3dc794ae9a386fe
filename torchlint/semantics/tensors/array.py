"""What is known of a NumPy array."""

from __future__ import annotations

from typing import NamedTuple

from torchlint.semantics.evidence import Evidence


class Array(NamedTuple):
    """An array, as far as the code shows it."""

    evidence: Evidence = Evidence.PROVEN
    owned: bool = False
    """Whether nobody else has its memory: it is a temporary."""

    ordered: bool = False
    """Whether it certainly lies in memory row by row."""

    dtypes: frozenset[str | None] = frozenset((None,))
    """The dtypes that it can have, None for one that is not known."""

    dimensions: int = 1
    """How many dimensions it has at least."""

    writable: bool = True
    """Whether nothing says that it may not be written to: torch warns where it shares such an array."""
