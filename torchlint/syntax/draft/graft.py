"""A draft with some of its top-level statements as libcst parses them: the whole tree where it matters, for less."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby

import libcst as cst

from torchlint.source import source_from_text
from torchlint.syntax.draft.nodes import NoDraftError, make
from torchlint.syntax.parse import SyntaxFailure, parse

_NEIGHBOUR = "pass\n"
"""Stands for the statement before or after: by it libcst knows whose the comments and blank lines between are."""

_BLOCKS = ("body", "handlers", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of a top-level statement, 1-based, its decorators included and comments around it not."""

    first: int
    last: int
    nodes: tuple[ast.stmt, ...]
    """Several for small statements that share a row."""


def spans(tree: ast.Module) -> list[Span]:
    """Return the rows of the statements of a module."""
    found: list[Span] = []
    for node in tree.body:
        decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        last = node.end_lineno or node.lineno
        if found and first == found[-1].last:
            found[-1] = Span(found[-1].first, last, (*found[-1].nodes, node))
        else:
            found.append(Span(first, last, (node,)))
    return found


def graft(module: cst.Module, tree: ast.Module, text: str, wanted: Collection[int]) -> cst.Module:
    """Return a draft with the statements of these indices parsed.

    Raises:
        NoDraftError: only the full tree will do.
    """
    places = spans(tree)
    if len(places) != len(module.body) or "\r" in text or "\f" in text:
        raise NoDraftError
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    indent = _first_indent(tree.body, lines)
    body = list(module.body)
    ends: dict[str, object] = {}
    for start, end in _runs(wanted):
        part = _parsed(lines, places, start, end, indent)
        own = _first_indent([node for place in places[start:end] for node in place.nodes], lines)
        parsed = part.body[bool(start) :][: end - start]
        if (own and own != indent) or [*map(type, parsed)] != [*map(type, body[start:end])]:
            raise NoDraftError
        body[start:end] = parsed
        ends |= {} if start else {"header": part.header}
        ends |= {} if end < len(places) else {"footer": part.footer}
    return make(
        cst.Module,
        body=tuple(body),
        encoding="utf-8",
        default_indent=indent or " " * 4,
        default_newline="\n",
        has_trailing_newline=text.endswith("\n"),
        **ends,
    )


def _runs(wanted: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the first index and the one after the last of each group of neighbours."""
    numbers = count()
    for _, group in groupby(sorted(wanted), key=lambda index: index - next(numbers)):
        run = list(group)
        yield run[0], run[-1] + 1


def _parsed(lines: Sequence[str], places: Sequence[Span], start: int, end: int, indent: str) -> cst.Module:
    """Return the module of the statements from one index to before another, between what stands for their neighbours.

    Raises:
        NoDraftError: they do not parse by themselves.
    """
    is_last = end == len(places)
    first, last = (
        _end(places[start - 1], lines, indent) if start else 0,
        len(lines) if is_last else places[end].first - 1,
    )
    before, after = _NEIGHBOUR * bool(start), _NEIGHBOUR * (not is_last)
    parsed = parse(source_from_text("".join([before, *lines[first:last], after])))
    if isinstance(parsed, SyntaxFailure) or len(parsed.module.body) != end - start + bool(before) + bool(after):
        raise NoDraftError
    return parsed.module


def _end(place: Span, lines: Sequence[str], indent: str) -> int:
    """Return the last row that belongs to a statement, among them the comments that are indented as its block is.

    Raises:
        NoDraftError: whose a comment is takes more to tell.
    """
    end = place.last
    is_own = _first_indent(place.nodes, lines) == indent != "" and lines[place.last - 1].startswith(indent)
    for row in range(place.last, len(lines)):
        line = lines[row]
        if not line.isspace() and not line.lstrip().startswith("#"):
            break
        if line.startswith("#"):
            is_own = False
        elif not line.isspace():
            if not is_own or not line.startswith(indent):
                raise NoDraftError
            end = row + 1
    return end


def _first_indent(nodes: Sequence[ast.AST], lines: Sequence[str]) -> str:
    """Return what the first block of these statements is indented by, which libcst takes for the habit of the file."""
    for node in nodes:
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block:
                continue
            first = block[0]
            if isinstance(first, ast.stmt):
                before = lines[first.lineno - 1][: first.col_offset]
                if before and not before.strip():
                    return before
            found = _first_indent(block, lines)
            if found:
                return found
    return ""
