"""The values of constants, each text evaluated once."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TypeAlias

import libcst as cst

Constant: TypeAlias = "cst.SimpleString | cst.ConcatenatedString | cst.BaseNumber"


def value_of(node: Constant) -> object:
    """Return what a constant means, None for a concatenation that holds replacement fields.

    libcst evaluates it anew whenever it is asked, and each time leaves cycles that only the garbage collector frees.
    """
    if isinstance(node, (cst.SimpleString, cst.Integer, cst.Float, cst.Imaginary)):
        return _evaluated(node.value)
    return node.evaluated_value if isinstance(node, cst.ConcatenatedString) else None


@lru_cache(maxsize=4096)
def _evaluated(text: str) -> object:
    return ast.literal_eval(text)
