"""A draft with some of its top-level statements as libcst parses them: the whole tree where it matters, for less."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count, groupby
from typing import TypeAlias

import libcst as cst

from torchlint.source import source_from_text
from torchlint.syntax.draft.filling import fill
from torchlint.syntax.draft.nodes import NoDraftError, make, set_field
from torchlint.syntax.draft.spans import Span
from torchlint.syntax.parse import SyntaxFailure, parse

_Statement: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"
_NEIGHBOUR = "pass\n"
"""Stands for the statement before or after: by it libcst knows whose the comments and blank lines between are."""


def graft(module: cst.Module, spans: Sequence[Span], text: str, wanted: Collection[int]) -> cst.Module:
    """Return a draft with the statements of these indices parsed.

    Raises:
        NoDraftError: only the full tree will do.
    """
    body = list(module.body)
    pieces, rest = _pieces(module, spans, text, wanted)
    for start, parsed in pieces:
        body[start : start + len(parsed)] = parsed
    return make(cst.Module, body=tuple(body), **rest)


def fill_in(module: cst.Module, spans: Sequence[Span], text: str, wanted: Collection[int]) -> None:
    """Give the statements of these indices, and the module itself, what the parser makes of their text.

    Raises:
        NoDraftError: only other nodes will do.
    """
    pieces, rest = _pieces(module, spans, text, wanted)
    for start, parsed in pieces:
        for own, statement in zip(module.body[start : start + len(parsed)], parsed, strict=True):
            fill(own, statement)
    for name, value in rest.items():
        set_field(module, name, value)


def _pieces(
    module: cst.Module, spans: Sequence[Span], text: str, wanted: Collection[int]
) -> tuple[list[tuple[int, Sequence[_Statement]]], dict[str, object]]:
    """Return the statements of these indices parsed, each group with its first index, and what the module has too.

    Raises:
        NoDraftError: only the full tree will do.
    """
    if len(spans) != len(module.body) or "\r" in text or "\f" in text:
        raise NoDraftError
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    indent = next((span.indent for span in spans if span.indent), "")
    body = module.body
    pieces: list[tuple[int, Sequence[_Statement]]] = []
    ends: dict[str, object] = {}
    for start, end in _runs(wanted):
        part = _parsed(lines, spans, start, end, indent)
        own = next((span.indent for span in spans[start:end] if span.indent), "")
        parsed = part.body[bool(start) :][: end - start]
        if (own and own != indent) or [*map(type, parsed)] != [*map(type, body[start:end])]:
            raise NoDraftError
        pieces.append((start, parsed))
        ends |= {} if start else {"header": part.header}
        ends |= {} if end < len(spans) else {"footer": part.footer}
    ends["default_indent"] = indent or " " * 4
    ends |= {"encoding": "utf-8", "default_newline": "\n", "has_trailing_newline": text.endswith("\n")}
    return pieces, ends


def _runs(wanted: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the first index and the one after the last of each group of neighbours."""
    numbers = count()
    for _, group in groupby(sorted(wanted), key=lambda index: index - next(numbers)):
        run = list(group)
        yield run[0], run[-1] + 1


def _parsed(lines: Sequence[str], spans: Sequence[Span], start: int, end: int, indent: str) -> cst.Module:
    """Return the module of the statements from one index to before another, between what stands for their neighbours.

    Raises:
        NoDraftError: they do not parse by themselves.
    """
    is_last = end == len(spans)
    first, last = (
        _end(spans[start - 1], lines, indent) if start else 0,
        len(lines) if is_last else spans[end].first - 1,
    )
    before, after = _NEIGHBOUR * bool(start), _NEIGHBOUR * (not is_last)
    parsed = parse(source_from_text("".join([before, *lines[first:last], after])))
    if isinstance(parsed, SyntaxFailure) or len(parsed.module.body) != end - start + bool(before) + bool(after):
        raise NoDraftError
    return parsed.module


def _end(span: Span, lines: Sequence[str], indent: str) -> int:
    """Return the last row that belongs to a statement, among them the comments that are indented as its block is.

    Raises:
        NoDraftError: whose a comment is takes more to tell.
    """
    end = span.last
    is_own = span.indent == indent != "" and lines[span.last - 1].startswith(indent)
    for row in range(span.last, len(lines)):
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
