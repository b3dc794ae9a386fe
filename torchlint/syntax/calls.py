"""Calls and their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.canonical import canonical
from torchlint.syntax.constants import value_of
from torchlint.syntax.old_python import OLD_KEYWORDS

_CONSTANTS: frozenset[type] = frozenset(
    (cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString, cst.UnaryOperation)
)


class Arguments(NamedTuple):
    """The arguments of a call by parameter name.

    ``open`` says that stars may carry more: an absent parameter is then not known to be absent.
    """

    named: dict[str, cst.BaseExpression]
    nodes: dict[str, cst.Arg]
    extra: tuple[cst.BaseExpression, ...]
    """Positional arguments beyond the known parameters."""

    open_positions: bool
    open_keywords: bool

    @property
    def open(self) -> bool:
        """Whether a ``*`` or ``**`` argument may carry any parameter."""
        return self.open_positions or self.open_keywords

    def get(self, name: str) -> cst.BaseExpression | None:
        """Return the expression given for a parameter, None where it is not visibly given."""
        return self.named.get(name)

    def absent(self, *names: str) -> bool:
        """Return whether none of these parameters is given, for certain."""
        return not self.open and not any(name in self.named for name in names)


def bind(arguments: Sequence[cst.Arg], signature: Sequence[str] = ()) -> Arguments:
    """Return the arguments of a call under the names of a signature; unknown positions go to ``extra``."""
    named: dict[str, cst.BaseExpression] = {}
    nodes: dict[str, cst.Arg] = {}
    extra: list[cst.BaseExpression] = []
    open_positions = open_keywords = False
    position = 0
    for argument in arguments:
        if argument.star == "*":
            open_positions = True
        elif argument.star == "**":
            open_keywords = open_keywords or not _is_literal_mapping(argument.value, named)
        elif argument.keyword is not None:
            name = OLD_KEYWORDS.get(argument.keyword.value, argument.keyword.value)
            named[name] = argument.value
            nodes[name] = argument
        else:
            if not open_positions and position < len(signature):
                named[signature[position]] = argument.value
                nodes[signature[position]] = argument
            else:
                extra.append(argument.value)
            position += 1
    return Arguments(named, nodes, tuple(extra), open_positions, open_keywords)


def _is_literal_mapping(expression: cst.BaseExpression, named: dict[str, cst.BaseExpression]) -> bool:
    """Take over the items of ``**{"name": value}`` and ``**dict(name=value)``; False for anything less visible."""
    if isinstance(expression, cst.Call) and isinstance(expression.func, cst.Name) and expression.func.value == "dict":
        if any(argument.keyword is None for argument in expression.args):
            return False
        named.update({a.keyword.value: a.value for a in expression.args if a.keyword is not None})
        return True
    if isinstance(expression, cst.Dict):
        for element in expression.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                return False
            key = value_of(element.key)
            if isinstance(key, str):
                named[key] = element.value
        return True
    return False


def literal(expression: cst.CSTNode | None) -> bool | int | float | str | None:
    """Return the Python value of a constant, None for ``None`` and for anything that is no constant."""
    if expression.__class__ not in _CONSTANTS:
        return None
    if isinstance(expression, cst.Name):
        return {"True": True, "False": False}.get(expression.value)
    if isinstance(expression, (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString)):
        value = value_of(expression)
        return value if isinstance(value, (int, float, str)) else None
    if isinstance(expression, cst.UnaryOperation) and isinstance(expression.operator, cst.Minus):
        number = literal(expression.expression)
        return -number if isinstance(number, (int, float)) else None
    return None


def is_none(expression: cst.CSTNode | None) -> bool:
    """Return whether an expression is the constant ``None``."""
    return type(expression) is cst.Name and expression.value == "None"


def method_call(node: cst.CSTNode | None, *names: str) -> cst.Attribute | None:
    """Return the ``receiver.name`` of a method call by one of these names (any name if none is given)."""
    # Nodes are of abstract classes, of which a negative `isinstance` is slow; this is asked most of all.
    if type(node) is not cst.Call or type(node.func) is not cst.Attribute:
        return None
    return node.func if not names or node.func.attr.value in names else None


def identifier(expression: cst.CSTNode) -> str:
    """Return the last name in ``a.b.name``, ``name`` or ``name[i]``; "" for anything else."""
    while type(expression) is cst.Subscript:
        expression = expression.value
    if type(expression) is cst.Name:
        return expression.value
    return expression.attr.value if type(expression) is cst.Attribute else ""


_may_stand_in: ContextVar[bool] = ContextVar("may_stand_in", default=True)
"""Whether some text may stand for the source text of a node that does not have it."""


@contextmanager
def source_text_only() -> Iterator[None]:
    """Within it, `code` raises AttributeError for a node of a draft, whose source text nobody can tell."""
    token = _may_stand_in.set(False)
    try:
        yield
    finally:
        _may_stand_in.reset(token)


def code(node: cst.CSTNode) -> str:
    """Return the source text of a node; for a node of a draft, some text that stands for it."""
    try:
        if type(node) is cst.Name and not node.lpar:
            return node.value  # most of them are, and libcst takes long to say so
        return cst.Module(body=()).code_for_node(node)
    except AttributeError:
        if not _may_stand_in.get():
            raise
        return canonical(node)


def element_at(value: cst.BaseExpression | None, path: tuple[int, ...]) -> cst.BaseExpression | None:
    """Return the part of a written-out tuple that ``a, b = 1, 2`` binds to a name."""
    for index in path:
        if not isinstance(value, (cst.Tuple, cst.List)) or not 0 <= index < len(value.elements):
            return None
        value = value.elements[index].value
    return value
