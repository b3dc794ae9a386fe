"""Edits on nodes written down as edits on text: minimal, sorted and disjoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits import operations as op
from torchlint.edits import statements
from torchlint.edits.arguments import change_arguments
from torchlint.edits.errors import RenderError
from torchlint.edits.imports import add_import
from torchlint.edits.locate import Locator
from torchlint.edits.text import is_word, merged, trimmed

_LINE_FEED = re.compile(r"(?<!\r)\n")
"""What rules write between lines, in place of what the file has there."""

_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseNumber,
    cst.BaseString,
    cst.Ellipsis,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.DictComp,
    cst.SetComp,
)
"""Expressions that can stand everywhere without parentheses (strings next to strings are not looked at)."""

_BRACES = (cst.Dict, cst.Set, cst.DictComp, cst.SetComp)
"""Expressions whose brace would join that of a replacement field of an f-string."""

_OPEN = (
    cst.Arg,
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.Return,
    cst.Expr,
    cst.Index,
    cst.If,
    cst.While,
    cst.WithItem,
    cst.Param,
)
"""Parents that take any expression without parentheses."""


def render(locator: Locator, edits: Sequence[op.Edit]) -> tuple[TextEdit, ...]:
    """Return the text edits of one fix.

    Raises:
        RenderError: an operation is impossible at its place, or two of them overlap.
    """
    found = merged(_text_edits(locator, edits))
    if found is None:
        raise RenderError("the edits of the fix overlap")
    minimal = merged(trimmed(edit, locator.text) for edit in found)
    if minimal is None:
        raise RenderError("the edits of the fix overlap")
    return minimal


def _text_edits(locator: Locator, edits: Sequence[op.Edit]) -> Iterator[TextEdit]:
    removed = {id(edit.statement) for edit in edits if isinstance(edit, op.RemoveStatement)}
    calls: dict[int, cst.Call] = {}
    for edit in edits:
        if isinstance(edit, op.ArgumentEdit):
            calls.setdefault(id(edit.call), edit.call)
        elif isinstance(edit, op.RemoveStatement):
            yield from statements.remove_statement(locator, edit.statement, removed, edit.about)
        else:
            yield from _render_one(locator, edit)
    for call in calls.values():
        changes = [edit for edit in edits if isinstance(edit, op.ArgumentEdit) and edit.call is call]
        added = [edit.code for edit in changes if isinstance(edit, (op.AddKeyword, op.AddPositional))]
        _refuse_in_string(locator, call, added)
        yield from change_arguments(locator, call, changes)


def _render_one(locator: Locator, edit: op.Edit) -> list[TextEdit]:
    if isinstance(edit, op.Replace):
        return _replace(locator, edit)
    if isinstance(edit, op.Unwrap):
        return _unwrap(locator, edit)
    if isinstance(edit, op.ReplaceStatement):
        return statements.replace_statement(locator, edit.statement, edit.lines)
    if isinstance(edit, op.InsertBefore):
        return statements.insert_before(locator, edit.statement, edit.lines)
    if isinstance(edit, op.InsertAfter):
        return statements.insert_after(locator, edit.statement, edit.lines)
    if isinstance(edit, op.AddDecorator):
        return statements.add_decorator(locator, edit.function, edit.code)
    if isinstance(edit, op.Dedent):
        return statements.dedent(locator, edit.statement)
    if isinstance(edit, op.RemoveWithItem):
        return statements.remove_with_item(locator, edit.statement, edit.item)
    if isinstance(edit, op.AddImport):
        return add_import(locator, edit)
    raise RenderError(f"unknown operation {type(edit).__name__}")


def _replace(locator: Locator, edit: op.Replace) -> list[TextEdit]:
    """Write code inside the parentheses that the node has, or with some where its surroundings need them."""
    _refuse_in_string(locator, edit.node, [edit.code])
    place = locator.syntactic(edit.node)
    code = _LINE_FEED.sub(locator.module.default_newline, edit.code)
    if isinstance(edit.node, cst.BaseExpression) and not edit.node.lpar:
        expression = _expression(code)
        if _needs_parentheses(locator, edit.node, expression) or _is_broken(code, expression, locator, edit.node):
            code = f"({code})"
    before, after = _spaces(locator.text, place, code[:1], code[-1:])
    return [TextEdit(place, before + code + after)]


def _expression(code: str) -> cst.BaseExpression:
    try:
        return cst.parse_expression(code)
    except cst.ParserSyntaxError:
        raise RenderError(f"{code!r} is not an expression") from None


def _unwrap(locator: Locator, edit: op.Unwrap) -> list[TextEdit]:
    _refuse_in_string(locator, edit.outer, ())
    text = locator.text
    outer, inner = locator.syntactic(edit.outer), locator.full(edit.inner)
    if not (outer.start <= inner.start and inner.end <= outer.end):
        raise RenderError("the inner expression is not inside the outer one")
    kept = text[inner.start : inner.end]
    before = after = ""
    is_bare = not edit.outer.lpar and not edit.inner.lpar
    if is_bare and (
        _needs_parentheses(locator, edit.outer, edit.inner) or _is_broken(kept, edit.inner, locator, edit.outer)
    ):
        before, after = "(", ")"
    first, last = before or kept[:1], after or kept[-1:]
    left, right = _spaces(text, outer, first, last)
    return [
        TextEdit(Range(outer.start, inner.start), left + before),
        TextEdit(Range(inner.end, outer.end), after + right),
    ]


def _needs_parentheses(locator: Locator, place: cst.BaseExpression, expression: cst.BaseExpression) -> bool:
    """Return whether an expression has to be parenthesised where another one stood without parentheses."""
    parent = locator.parent(place)
    if expression.lpar:
        return False
    if isinstance(expression, cst.Integer) and isinstance(parent, cst.Attribute):
        return True
    if isinstance(expression, _BRACES) and isinstance(parent, cst.FormattedStringExpression):
        return True
    if isinstance(expression, _ATOMS):
        return False
    if isinstance(expression, (cst.GeneratorExp, cst.NamedExpr, cst.Yield)):
        return True
    if isinstance(expression, cst.Tuple):
        if isinstance(parent, cst.WithItem):
            raise RenderError("a tuple in parentheses would be several items of the with statement")
        return not isinstance(parent, (cst.Return, cst.Expr))
    return not isinstance(parent, _OPEN)


def _is_broken(code: str, expression: cst.BaseExpression, locator: Locator, place: cst.BaseExpression) -> bool:
    """Return whether code spans lines that nothing in it or around it joins."""
    if "\n" not in code and "\r" not in code:
        return False
    is_bracketed = code[0] in "([{" and isinstance(expression, (cst.List, cst.Dict, cst.Set, cst.Tuple, cst.ListComp))
    return not is_bracketed and not _is_joined(code) and not _in_brackets(locator, place)


def _is_joined(code: str) -> bool:
    try:
        cst.parse_module(f"_ = {code}\n")
    except cst.ParserSyntaxError:
        return False
    return True


def _in_brackets(locator: Locator, place: cst.BaseExpression) -> bool:
    chain = list(locator.enclosing(place))
    for node, parent in pairwise(chain):
        if isinstance(parent, cst.BaseStatement):
            return False
        if isinstance(parent, (cst.List, cst.Dict, cst.Set, cst.BaseComp)) or getattr(parent, "lpar", None):
            return True
        if isinstance(parent, cst.Call) and node is not parent.func:
            return True
    return False


def _spaces(text: str, place: Range, first: str, last: str) -> tuple[str, str]:
    """Return what keeps the new text from growing together with the words around it."""
    left = place.start > 0 and is_word(text[place.start - 1]) and bool(first) and (is_word(first) or first in "\"'")
    right = place.end < len(text) and is_word(text[place.end]) and bool(last) and is_word(last)
    return " " if left else "", " " if right else ""


def _refuse_in_string(locator: Locator, node: cst.CSTNode, codes: Sequence[str]) -> None:
    """Raise RenderError if code goes where it may be kept as text, or into an f-string that ends at a mark in it."""
    for ancestor in locator.enclosing(node):
        if isinstance(ancestor, cst.Annotation) and isinstance(node, cst.Call):
            raise RenderError("the annotation around it may be kept as text")
        if isinstance(ancestor, cst.FormattedStringExpression) and ancestor.equal is not None:
            raise RenderError("the f-string around it shows the code")  # f"{x=}"
        if isinstance(ancestor, cst.FormattedString):
            marks = {"\\", "\n", "\r", "#", ancestor.quote[0]}
            if any(mark in code for mark in marks for code in codes):
                raise RenderError("the code does not fit into the f-string around it")
