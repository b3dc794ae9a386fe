"""Batches that one pass of a loop collects for one update of the weights."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator


def goes_over_collected(inner: cst.For, outer: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop goes over a list that this pass of the outer one began: ``batches = []``.

    Such a loop is part of a step, where one over a loader is an epoch.
    """
    return any(_is_begun(name, outer, evaluator) for name in evaluator.tree.below(inner.iter, cst.Name))


def _is_begun(name: cst.Name, outer: cst.For | cst.While, evaluator: Evaluator) -> bool:
    bindings = evaluator.flow.definitions(name)
    if not bindings or any(not evaluator.tree.within(binding.node, outer.body) for binding in bindings):
        return False
    return any(_is_list(binding.value, evaluator) for binding in bindings)


def _is_list(value: cst.CSTNode | None, evaluator: Evaluator) -> bool:
    """Whether a value is an empty list, or one of as many batches as are counted, not of all that a loader has."""
    if not isinstance(value, cst.ListComp):
        return isinstance(value, cst.List) and not value.elements
    made = value.for_in.iter
    return isinstance(made, cst.Call) and evaluator.names.qualified(made.func) == "builtins.range"
