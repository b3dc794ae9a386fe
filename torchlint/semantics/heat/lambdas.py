"""When a lambda is called."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

_CALLS_AT_ONCE = re.compile(
    r"(^|_)(map|apply|reduce|filter|sort|sorted|min|max|step|cond|checkpoint|run|call|where)(_|$)"
)
"""What functions are called that call the function which they are given before they return."""


def runs_at_once(function: cst.Lambda, tree: Tree) -> bool:
    """Return whether a lambda is called where it stands, or handed to what calls it before it returns."""
    holder = tree.parent(function)
    call = tree.parent(holder) if isinstance(holder, cst.Arg) else holder
    if not isinstance(call, cst.Call):
        return False
    return call.func is function or bool(_CALLS_AT_ONCE.search(identifier(call.func)))
