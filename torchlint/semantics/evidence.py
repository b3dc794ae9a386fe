"""How certain an answer of the model is."""

from __future__ import annotations

from enum import IntEnum


class Evidence(IntEnum):
    """The weakest link in the chain that led to an answer.

    Evidence is ordered, so that the evidence of a conclusion is ``min`` of the evidence of its premises.
    """

    NAMED = 1
    """Only the name says so (``loss``, ``optimizer``, ``loader``)."""

    INFERRED = 2
    """Data flow or use within the file says so."""

    PROVEN = 3
    """Syntax, imports and the torch API tables say so."""
