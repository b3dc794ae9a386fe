"""Importing libcst without what its nodes never use, which is most of the time that a small file takes."""

from __future__ import annotations

import abc
import contextlib  # noqa: F401 - before what it derives from `abc.ABC` would be derived from something else
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

_NODES = "libcst._nodes."
_OWN_METHODS = {"__repr__", "__eq__", "__hash__"}
"""What every class of a node already has of its own when ``dataclass`` sees it, which therefore leaves it alone."""


class PlainABC:
    """Stands for ``abc.ABC`` while libcst is imported, so that its nodes are classes like others."""

    __slots__ = ()


def import_libcst() -> None:
    """Import libcst, unless it is imported, so that making the classes of its nodes takes a third of the time.

    ``dataclass`` compiles five methods for each of some 180 classes of nodes. Two of them, which compare and print, it
    then throws away, since libcst has its own; two forbid to set a field, which nobody does. What libcst does is the
    same, and a class that derives from a node is declared as ever.

    No class of libcst has virtual subclasses, but ``isinstance`` asks each class made with ``ABC`` for them, in Python:
    a tenth of the time that a large tree takes.
    """
    if "libcst" in sys.modules:
        return
    nodes: list[type] = []
    dataclass, base = dataclasses.dataclass, abc.ABC

    def lean(cls: type | None = None, /, **options: Any) -> Any:
        def decorate(cls: type) -> type:
            if not (cls.__module__.startswith(_NODES) and vars(cls).keys() >= _OWN_METHODS and options.get("frozen")):
                return _declared(dataclass, cls, options)
            nodes.append(_declared(dataclass, cls, {**options, "repr": False, "eq": False, "frozen": False}))
            return nodes[-1]

        return decorate if cls is None else decorate(cls)

    dataclasses.dataclass, abc.ABC = lean, PlainABC  # type: ignore[assignment, misc]
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass, abc.ABC = dataclass, base  # type: ignore[misc]
    for node in nodes:
        node.__dataclass_params__.frozen = True  # type: ignore[attr-defined]


def _declared(dataclass: Callable[..., Any], cls: type, options: dict[str, Any]) -> type:
    declared: type = dataclass(**options)(cls)
    return declared
