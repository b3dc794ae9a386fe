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
        known: dict[int, Answer] | None = self.__dict__.get(kept)
        if known is None:
            known = self.__dict__[kept] = {}
        key = id(node)
        if key not in known:
            known[key] = method(self, node)
        return known[key]

    return answered
