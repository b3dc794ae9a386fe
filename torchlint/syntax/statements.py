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
