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
        known: dict[int, tuple[Node, Answer]] | None = self.__dict__.get(kept)
        if known is None:
            known = self.__dict__[kept] = {}
        found = known.get(id(node))
        if found is None:  # the memory keeps the node, so that no other one, made by a rule, has its id after it
            found = known[id(node)] = (node, method(self, node))
        return found[1]

    return answered
