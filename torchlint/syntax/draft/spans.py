"""Where the top-level statements of a draft stand in its text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

_BLOCKS = ("body", "handlers", "orelse", "finalbody")


class Span(NamedTuple):
    """The rows of a top-level statement, 1-based, its decorators included and comments around it not."""

    first: int
    last: int
    indent: str
    """What its first block is indented by; empty if it has none on rows of its own."""


def spans(tree: ast.Module, text: str) -> tuple[Span, ...]:
    """Return the rows of the statements of a module; small ones that share a row share a span."""
    lines = text.split("\n")
    found: list[Span] = []
    for node in tree.body:
        decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        last = node.end_lineno or node.lineno
        if found and first == found[-1].last:
            found[-1] = Span(found[-1].first, last, found[-1].indent)
        else:
            found.append(Span(first, last, _indent((node,), lines)))
    return tuple(found)


def _indent(nodes: Sequence[ast.AST], lines: Sequence[str]) -> str:
    """Return what the first block of these statements is indented by, which libcst takes for the habit of the file."""
    for node in nodes:
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block:
                continue
            first = block[0]
            if isinstance(first, ast.stmt) and first.lineno <= len(lines):
                before = lines[first.lineno - 1][: first.col_offset]
                if before and not before.strip():
                    return before
            found = _indent(block, lines)
            if found:
                return found
    return ""
