"""A tree for reading only, many times cheaper than libcst's parser: the standard library's ``ast`` in libcst's nodes.

The nodes of a draft hold what has a meaning, and neither white space nor punctuation nor parentheses: to read such a
field, to print a node or to change it raises AttributeError. So whoever works on a draft either sees what the full tree
would show, or learns that the full tree is needed.
"""

from __future__ import annotations

import ast
import warnings

import libcst as cst

from torchlint.syntax.depth import find_too_deep
from torchlint.syntax.draft.nodes import NoDraftError, make
from torchlint.syntax.draft.statements import Statements


def draft(text: str) -> cst.Module:
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
    return make(cst.Module, body=Statements(text).block(tree.body))
