"""Arguments of calls added and removed, in the style that the call is written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from torchlint.diagnostic import Range, TextEdit
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import Locator
from torchlint.edits.operations import AddKeyword, AddPositional, ArgumentEdit, ListArguments, RemoveArgument
from torchlint.edits.text import indentation, line_before, line_end, line_start, starts_line
from torchlint.syntax.calls import bind


class _Call(NamedTuple):
    """Where a call's arguments stand; ``close`` is the offset of its closing parenthesis."""

    arguments: tuple[Range, ...]
    open: int
    close: int


def change_arguments(locator: Locator, call: cst.Call, changes: Sequence[ArgumentEdit]) -> list[TextEdit]:
    """Return the edits that remove and add arguments of one call.

    Raises:
        RenderError: the call cannot take the argument.
    """
    removals = [change for change in changes if isinstance(change, RemoveArgument)]
    additions = [change for change in changes if isinstance(change, AddKeyword)]
    _check(call, removals, additions)
    place = _locate(locator, call)
    leading = [change.code for change in changes if isinstance(change, AddPositional)]
    if (leading or additions) and _has_bare_generator(call, removals):
        raise RenderError("a generator without parentheses must be the only argument")
    removed = {index for index, argument in enumerate(call.args) if any(argument is r.argument for r in removals)}
    keywords = [f"{addition.name}={_value(addition.code)}" for addition in additions]
    slot = _slot(removed, call) if keywords else None
    edits = [_removal(locator.text, place, *run) for run in _runs(removed) if run != slot]
    if leading and (0 in removed or not call.args):
        if call.args and (slot is None or slot[0] > 0):
            raise RenderError("an argument goes where another one is put")
        keywords, leading = [*leading, *keywords], []
    if slot:
        edits.append(_replacement(locator.text, place, *slot, keywords))
    elif keywords:
        edits += _addition(locator, place, keywords)
    if leading:
        first = place.arguments[0].start
        separator = _separator(locator.text, first)
        edits.append(TextEdit(Range(first, first), separator.join([*leading, ""])))
    for change in changes:
        if isinstance(change, ListArguments):
            listed = [place.arguments[0].start, place.arguments[_index(change.last, call)].end]
            edits += [TextEdit(Range(at, at), mark) for at, mark in zip(listed, "[]", strict=True)]
    return edits


def _value(code: str) -> str:
    """Return code as the value of a keyword: what assigns a name needs parentheses there, unlike between commas."""
    if ":=" not in code:
        return code
    call = cst.parse_expression(f"_({code})")
    argument = call.args[0] if isinstance(call, cst.Call) and len(call.args) == 1 else None
    is_bare = argument is not None and isinstance(argument.value, cst.NamedExpr) and not argument.value.lpar
    return f"({code})" if is_bare else code


def _index(argument: cst.Arg, call: cst.Call) -> int:
    return next(index for index, other in enumerate(call.args) if other is argument)


def _check(call: cst.Call, removals: Sequence[RemoveArgument], additions: Sequence[AddKeyword]) -> None:
    removed = [removal.argument for removal in removals]
    kept = [argument for argument in call.args if not any(argument is other for other in removed)]
    if len(kept) + len(removed) != len(call.args):
        raise RenderError("the argument is not one of the call")
    taken = {argument.keyword.value for argument in kept if argument.keyword} | bind(kept).named.keys()
    if any(addition.name in taken for addition in additions):
        raise RenderError("the call has this argument already")


def _has_bare_generator(call: cst.Call, removals: Sequence[RemoveArgument]) -> bool:
    bare = [a for a in call.args if isinstance(a.value, cst.GeneratorExp) and not a.value.lpar]
    return any(all(argument is not removal.argument for removal in removals) for argument in bare)


def _locate(locator: Locator, call: cst.Call) -> _Call:
    arguments = tuple(locator.syntactic(argument, call) for argument in call.args)
    close = locator.syntactic(call).end - 1
    opening = _find("(", locator.text, locator.full(call.func).end, close + 1)
    if opening is None:
        raise RenderError("the parentheses of the call were not found")
    return _Call(arguments, opening + 1, close)


def _runs(removed: set[int]) -> list[tuple[int, int]]:
    """Return neighbouring indices as half-open runs."""
    runs: list[tuple[int, int]] = []
    for index in sorted(removed):
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


def _slot(removed: set[int], call: cst.Call) -> tuple[int, int] | None:
    """Return the last run of removed arguments whose place keywords can take: no positional one follows."""
    runs = _runs(removed)
    if runs and all(argument.keyword or argument.star for argument in call.args[runs[-1][1] :]):
        return runs[-1]
    return None


def _removal(text: str, call: _Call, first: int, last: int) -> TextEdit:
    start, end = call.arguments[first].start, call.arguments[last - 1].end
    own_lines = starts_line(text, start) and _ends_line(text, end)
    if last < len(call.arguments):
        following = call.arguments[last].start
        if own_lines and line_start(text, following) > end:
            return _deletion(line_before(text, start), line_end(text, end))
        return _deletion(start, following)
    if first == 0:
        return _deletion(call.open, call.close)
    previous = call.arguments[first - 1].end
    if own_lines and "#" in text[previous:start]:
        return _deletion(line_before(text, start), line_end(text, end))
    return _deletion(previous, end)


def _ends_line(text: str, offset: int) -> bool:
    """Return whether nothing but a comma and a comment follows on the line."""
    rest = text[offset : line_end(text, offset)].strip().removeprefix(",").strip()
    return not rest or rest.startswith("#")


def _deletion(start: int, end: int) -> TextEdit:
    return TextEdit(Range(start, end), "")


def _replacement(text: str, call: _Call, first: int, last: int, keywords: Sequence[str]) -> TextEdit:
    start = call.arguments[first].start
    return TextEdit(Range(start, call.arguments[last - 1].end), _separator(text, start).join(keywords))


def _separator(text: str, offset: int) -> str:
    """Return what goes between an argument that begins at this offset and the next."""
    if not starts_line(text, offset):
        return ", "
    start = line_start(text, offset)
    return "," + text[line_before(text, offset) : start] + indentation(text, offset)


def _addition(locator: Locator, call: _Call, keywords: Sequence[str]) -> list[TextEdit]:
    text = locator.text
    if not call.arguments:
        return [_first_arguments(locator, call, keywords)]
    last = call.arguments[-1]
    separator = _separator(text, last.start)
    rest = text[last.end : call.close]
    added = separator.join(["", *keywords])
    if "#" not in rest:
        return [TextEdit(Range(last.end, last.end), added)]
    # A comment after the last argument stays with it: the new ones follow on lines of their own.
    comma = _find(",", text, last.end, call.close)
    behind = line_end(text, last.end if comma is None else comma)
    if separator == ", ":
        separator = "," + locator.module.default_newline + indentation(text, last.start)
        added = separator.join(["", *keywords])
    edits = [] if comma is not None else [TextEdit(Range(last.end, last.end), ",")]
    return [*edits, TextEdit(Range(behind, behind), added.removeprefix(",") + ("," if comma is not None else ""))]


def _find(mark: str, text: str, start: int, end: int) -> int | None:
    """Return the offset of a punctuation mark where otherwise only white space and comments stand."""
    offset = start
    while offset < end:
        if text[offset] == mark:
            return offset
        offset = line_end(text, offset) if text[offset] == "#" else offset + 1
    return None


def _first_arguments(locator: Locator, call: _Call, keywords: Sequence[str]) -> TextEdit:
    text = locator.text
    inside = text[call.open : call.close]
    if "\n" not in inside and "\r" not in inside:
        return TextEdit(Range(call.open, call.open), ", ".join(keywords))
    outer = indentation(text, call.close)
    inner = outer + locator.module.default_indent
    newline = locator.module.default_newline
    lines = newline + inner + ("," + newline + inner).join(keywords) + ","
    position = line_before(text, call.close) if starts_line(text, call.close) else call.close
    return TextEdit(Range(position, position), lines)
