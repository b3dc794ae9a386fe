"""Tests of the stage of a run by which frameworks tell training from evaluation: ``if stage != sb.Stage.TRAIN``."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

_TRAINS = frozenset(("TRAIN", "TRAINING", "FIT"))
_STAGES = _TRAINS | {"VALID", "VALIDATION", "VAL", "EVAL", "TEST", "PREDICT"}


def trains_in(test: cst.BaseExpression, taken: bool) -> bool | None:
    """Return whether a branch of a test of the stage belongs to training; None for any other test."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator, stage = test.comparisons[0].operator, test.comparisons[0].comparator
    if not isinstance(operator, (cst.Equal, cst.NotEqual)) or identifier(stage) not in _STAGES:
        return None
    is_this = isinstance(operator, cst.Equal) is taken
    return is_this if identifier(stage) in _TRAINS else (False if is_this else None)


def is_other_stage(node: cst.CSTNode, function: cst.FunctionDef | None, tree: Tree) -> bool:
    """Return whether a node of a function runs only in a stage that does not train."""
    child = node
    for ancestor in tree.ancestors(node):
        if ancestor is function:
            return False
        branches = (ancestor.body, ancestor.orelse) if isinstance(ancestor, cst.If) else ()
        if isinstance(ancestor, cst.If) and any(child is branch for branch in branches):
            trains = trains_in(ancestor.test, child is ancestor.body)
            if trains is False:
                return True
        child = ancestor
    return False
