"""When a lambda is called."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
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


def calls_of(assignment: cst.Assign, evaluator: Evaluator) -> Iterator[cst.Call]:
    """Yield the calls by a name that is assigned to, which may run what it is given there."""
    for call in evaluator.tree.nodes(cst.Call):
        bindings = evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else []
        if any(binding.value is assignment.value for binding in bindings):
            yield call
