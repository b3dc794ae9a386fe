"""What loops run over: lists of layers are run through item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.layers import expressions
from torchlint.semantics.layers.state import State
from torchlint.semantics.layers.values import Items, Splice, Value

if TYPE_CHECKING:
    from torchlint.semantics.layers.interpreter import Interpreter

_UNROLLED = 24
_LOOPED = frozenset(("builtins.zip", "builtins.enumerate", "builtins.list", "builtins.tuple"))


def passes(iterable: cst.BaseExpression, state: State, interpreter: Interpreter) -> list[Value]:
    """Return what a loop binds to its target, pass by pass; empty where that cannot be seen."""
    if isinstance(iterable, cst.Call):
        name = interpreter.qualified(iterable.func)
        rows = [passes(argument.value, state, interpreter) for argument in iterable.args] if name in _LOOPED else []
        if name == "builtins.zip" and rows and any(rows):
            length = min(len(row) for row in rows if row)
            return [
                Items(tuple(row[i] if row else None for row in rows), tuple(a.value for a in iterable.args))
                for i in range(length)
            ]
        if name == "builtins.enumerate" and rows and rows[0]:
            return [Items((None, item), (iterable, iterable)) for item in rows[0]]
        if name in _LOOPED:
            return rows[0] if rows else []
    value = expressions.evaluate(iterable, state, interpreter)
    if isinstance(value, Items) and len(value.items) <= _UNROLLED and not _spliced(value):
        return list(value.items)
    state.open(value, iterable)
    return []


def _spliced(items: Items) -> bool:
    return any(isinstance(item, Splice) for item in items.items)
