"""Errors that the code around a node handles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def may_be_caught(node: cst.CSTNode, model: Model) -> bool:
    """Return whether a ``try`` around a node has handlers, for which an error may come from another function."""
    tries = (around for around in model.ancestors(node) if isinstance(around, (cst.Try, cst.TryStar)))
    return any(one.handlers for one in tries)
