"""Statements and the blocks in which they stand."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.syntax.calls import identifier


def is_main_guard(statement: cst.If) -> bool:
    """Return whether an ``if`` compares ``__name__``: what it holds runs whenever the file is run."""
    test = statement.test
    return isinstance(test, cst.Comparison) and identifier(test.left) == "__name__"


def statements_before(block: cst.IndentedBlock | cst.Module, statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Return the statements of a block before one of them."""
    place = next((index for index, line in enumerate(block.body) if line is statement), 0)
    return block.body[:place]


def plain_statements(function: cst.FunctionDef) -> list[cst.BaseSmallStatement] | None:
    """Return the statements of a function; None if it has compound ones."""
    found: list[cst.BaseSmallStatement] = []
    for line in function.body.body:
        if isinstance(line, cst.BaseCompoundStatement):
            return None
        found += line.body if isinstance(line, cst.SimpleStatementLine) else ()
        found += (line,) if isinstance(line, cst.BaseSmallStatement) else ()  # `def freeze(self): pass`
    return found


def is_placeholder(statement: cst.BaseSmallStatement) -> bool:
    """Return whether a statement does nothing: ``pass``, a text or dots."""
    if isinstance(statement, cst.Expr):
        return isinstance(statement.value, (cst.BaseString, cst.Ellipsis))
    return isinstance(statement, cst.Pass)
