"""A tree for reading only, many times cheaper than libcst's parser: the standard library's ``ast`` in libcst's nodes.

The nodes of a draft hold what has a meaning, and neither white space nor punctuation nor parentheses: to read such a
field, to print a node or to change it raises AttributeError. So whoever works on a draft either sees what the full tree
would show, or learns that the full tree is needed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.depth import find_too_deep
from torchlint.syntax.draft.nodes import NoDraftError, make
from torchlint.syntax.draft.spans import Span, spans
from torchlint.syntax.draft.statements import Statements


class Draft(NamedTuple):
    """The draft of a text, and where its statements stand."""

    text: str
    module: cst.Module
    spans: tuple[Span, ...]
    """Of the statements of the module."""

    def grafted(self, wanted: Collection[int]) -> cst.Module:
        """Return the draft with the top-level statements of these indices as libcst parses them.

        Raises:
            NoDraftError: only the full tree will do.
        """
        from torchlint.syntax.draft.graft import graft

        return graft(self.module, self.spans, self.text, wanted)

    def fill_in(self, wanted: Collection[int]) -> None:
        """Give the nodes of these statements what they lack: white space, punctuation, parentheses, their text.

        Raises:
            NoDraftError: the draft has other nodes than the text; some may have been given it, and are no worse for it.
        """
        from torchlint.syntax.draft.graft import fill_in

        fill_in(self.module, self.spans, self.text, wanted)

    def rows(self, wanted: Collection[int]) -> int:
        """Return how many rows these statements take."""
        return sum(self.spans[index].last - self.spans[index].first + 1 for index in wanted)

    def share(self, wanted: Collection[int]) -> float:
        """Return which part of the text these statements are, 0 to 1, by rows."""
        return self.rows(wanted) / (self.text.count("\n") + 1)


def draft(text: str) -> Draft:
    """Return the draft of a text.

    Raises:
        NoDraftError: only the full tree will do.
    """
    if "\0" in text or find_too_deep(text) is not None:
        raise NoDraftError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NoDraftError from None
    module = make(cst.Module, body=Statements(text).block(tree.body))
    return Draft(text, module, spans(tree, text))
