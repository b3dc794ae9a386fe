"""Methods that work out once what they say of a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import libcst as cst

Owner = TypeVar("Owner")
Node = TypeVar("Node", bound=cst.CSTNode)
Answer = TypeVar("Answer")


def remembered(method: Callable[[Owner, Node], Answer]) -> Callable[[Owner, Node], Answer]:
    """Return the method with a memory, which lies in the object, of what it has answered for each node."""
    kept = f"_{method.__name__}_of"

    @wraps(method)
    def answered(self: Owner, node: Node) -> Answer:
        known: dict[Node, Answer] | None = self.__dict__.get(kept)
        if known is None:
            known = self.__dict__[kept] = {}
        if node not in known:  # nodes are equal to themselves only; the memory keeps those that a rule has made
            known[node] = method(self, node)
        return known[node]

    return answered
