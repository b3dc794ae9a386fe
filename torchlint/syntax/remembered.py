"""Methods that work out once what they say of a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import libcst as cst

Owner = TypeVar("Owner")
Node = TypeVar("Node", bound=cst.CSTNode)
Answer = TypeVar("Answer")


_UNKNOWN: Any = object()


def remembered(method: Callable[[Owner, Node], Answer]) -> Callable[[Owner, Node], Answer]:
    """Return the method with a memory, which lies in the object, of what it has answered for each node."""
    kept = f"_{method.__name__}_of"

    @wraps(method)
    def answered(self: Owner, node: Node) -> Answer:
        memory: tuple[dict[int, Answer], list[Node]] | None = self.__dict__.get(kept)
        if memory is None:
            memory = self.__dict__[kept] = ({}, [])
        answers, nodes = memory
        found: Answer = answers.get(id(node), _UNKNOWN)
        if found is _UNKNOWN:
            found = answers[id(node)] = method(self, node)
            nodes.append(node)  # kept, so that no other one, which a rule makes, can have its id after it
        return found

    return answered
