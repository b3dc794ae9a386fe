"""The vocabulary of edits: what a rule can do to a node. Text and offsets are the business of `locate`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst


@dataclass(frozen=True, slots=True)
class Replace:
    """Write ``code`` in place of an expression (or of any node that is not a statement)."""

    node: cst.CSTNode
    code: str


@dataclass(frozen=True, slots=True)
class Unwrap:
    """Keep the text of ``inner``, drop the rest of ``outer``: ``f(x).cuda()`` becomes ``f(x)``."""

    outer: cst.BaseExpression
    inner: cst.BaseExpression


@dataclass(frozen=True, slots=True)
class AddKeyword:
    """Append ``name=code`` to the arguments of a call, in the style of its line breaks and trailing comma."""

    call: cst.Call
    name: str
    code: str


@dataclass(frozen=True, slots=True)
class AddPositional:
    """Put a positional argument before all other arguments of a call."""

    call: cst.Call
    code: str


@dataclass(frozen=True, slots=True)
class RemoveArgument:
    """Drop an argument of a call together with its comma."""

    call: cst.Call
    argument: cst.Arg


@dataclass(frozen=True, slots=True)
class ListArguments:
    """Make a list of the first positional arguments of a call, up to one: ``f(a, *b)`` becomes ``f([a, *b])``."""

    call: cst.Call
    last: cst.Arg


@dataclass(frozen=True, slots=True)
class RemoveStatement:
    """Drop a small or compound statement; the only statement of a body becomes ``pass``.

    A body that is left empty goes with the ``if torch.cuda.is_available():`` or the ``else:`` around it.
    """

    statement: cst.BaseSmallStatement | cst.BaseCompoundStatement
    about: re.Pattern[str] | None = None
    """What a comment right above says that speaks of the statement only, and goes with it."""


@dataclass(frozen=True, slots=True)
class ReplaceStatement:
    """Write lines of code in place of a statement, at its indentation."""

    statement: cst.BaseSmallStatement | cst.BaseCompoundStatement
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """Write lines of code before the line of a statement, at its indentation."""

    statement: cst.BaseSmallStatement | cst.BaseCompoundStatement
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Write lines of code after the last line of a statement, at its indentation."""

    statement: cst.BaseSmallStatement | cst.BaseCompoundStatement
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddDecorator:
    """Put ``@code`` on a line of its own above a function, below the decorators that it has."""

    function: cst.FunctionDef
    code: str


@dataclass(frozen=True, slots=True)
class Dedent:
    """Drop the header of a ``with`` statement and move its body one level out."""

    statement: cst.With


@dataclass(frozen=True, slots=True)
class RemoveWithItem:
    """Drop one of several items of a ``with`` statement together with its comma."""

    statement: cst.With
    item: cst.WithItem


@dataclass(frozen=True, slots=True)
class AddImport:
    """Make sure that ``import module`` (or ``from module import name``) is in force.

    It goes to the imports at the top of the file, or where ``beside`` stands if that import is not one of them.
    """

    module: str
    name: str | None = None
    beside: cst.Import | cst.ImportFrom | None = None


ArgumentEdit: TypeAlias = AddKeyword | AddPositional | RemoveArgument | ListArguments
Edit: TypeAlias = (
    Replace
    | Unwrap
    | ArgumentEdit
    | RemoveStatement
    | ReplaceStatement
    | InsertBefore
    | InsertAfter
    | AddDecorator
    | Dedent
    | RemoveWithItem
    | AddImport
)
