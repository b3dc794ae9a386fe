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


_CALLS_WITHOUT = 40
"""How many nodes of a class take less time without an ``__init__`` of their own than compiling one does."""


class PlainABC:
    """Stands for ``abc.ABC`` while libcst is imported, so that its nodes are classes like others."""

    __slots__ = ()


def import_libcst() -> None:
    """Import libcst, unless it is imported, so that making the classes of its nodes takes a sixth of the time.

    ``dataclass`` compiles five methods for each of some 180 classes of nodes. Two of them, which compare and print, it
    then throws away, since libcst has its own; two forbid to set a field, which nobody does; and the fifth,
    ``__init__``, is compiled here when many nodes of the class are made, since a small file holds few of most
    kinds. What libcst does is the same, and a class that derives from a node is declared as ever.

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
            cls.__doc__ = cls.__doc__ or f"libcst's node {cls.__name__}."  # else dataclass works out a signature for it
            lean_options = {**options, "init": False, "repr": False, "eq": False, "frozen": False}
            nodes.append(_declared(dataclass, cls, lean_options))
            if "__init__" not in vars(cls):
                setattr(cls, "__init__", _compiled_when_called(dataclass, cls))  # noqa: B010 - mypy forbids to assign
            return nodes[-1]

        return decorate if cls is None else decorate(cls)

    dataclasses.dataclass, abc.ABC = lean, PlainABC  # type: ignore[assignment, misc]
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass, abc.ABC = dataclass, base  # type: ignore[misc]
    for node in nodes:
        node.__dataclass_params__.frozen = True  # type: ignore[attr-defined]


def _compiled_when_called(dataclass: Callable[..., Any], declared: type) -> Callable[..., None]:
    """Return an ``__init__`` for nodes that puts the one of ``dataclass`` in its place once it is called often.

    libcst makes another class of the ``declared`` one, with slots: the one to change is found by the function itself.
    """
    fields: list[dataclasses.Field[Any]] = []
    rest = iter(range(_CALLS_WITHOUT))

    def initialize(self: Any, *values: Any, **named: Any) -> None:
        if not fields:
            fields.extend(field for field in dataclasses.fields(declared) if field.init)
        if next(rest, None) is not None and not values and _has_set(self, fields, named):
            self.__post_init__()
            return
        body: dict[str, Any] = {
            field.name: dataclasses.field(
                default=field.default, default_factory=field.default_factory, kw_only=field.kw_only
            )
            for field in fields
        }
        body["__doc__"] = declared.__doc__
        body["__annotations__"] = {field.name: object for field in fields}
        body["__post_init__"] = None  # dataclass asks only whether there is one, and each node has one
        same_fields = _declared(dataclass, type(declared.__name__, (), body), {"repr": False, "eq": False})
        compiled = vars(same_fields)["__init__"]
        for cls in type(self).__mro__:
            if vars(cls).get("__init__") is initialize:
                setattr(cls, "__init__", compiled)  # noqa: B010 - mypy forbids to assign
        compiled(self, *values, **named)

    return initialize


def _has_set(node: Any, fields: list[dataclasses.Field[Any]], named: dict[str, Any]) -> bool:
    """Set the fields of a node to what is named or their defaults; return whether that is all that was to do."""
    used = 0
    for field in fields:
        if field.name in named:
            value = named[field.name]
            used += 1
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            return False
        setattr(node, field.name, value)
    return used == len(named)


def _declared(dataclass: Callable[..., Any], cls: type, options: dict[str, Any]) -> type:
    declared: type = dataclass(**options)(cls)
    return declared
