"""Loops that cut their batches out of a tensor or dataset by their counter."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind


def takes_slices(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether each iteration cuts its batch out of a tensor: ``for i in range(0, n, size): x[i : i + size]``."""
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
        return False
    made = loop.iter if isinstance(loop.iter, cst.Call) else None
    if made is None or len(made.args) != 3 or evaluator.names.qualified(made.func) != "builtins.range":
        return False
    cuts = evaluator.tree.below(loop.body, cst.Subscript)
    return any(
        isinstance(cut.slice[0].slice, cst.Slice)
        and isinstance(cut.slice[0].slice.lower, cst.Name)
        and cut.slice[0].slice.lower.value == loop.target.value
        and evaluator.value(cut.value).is_tensor
        for cut in cuts
    )


def takes_items(loop: cst.For, evaluator: Evaluator) -> Evidence | None:
    """Return how certain it is that each iteration takes an item of a dataset by the loop's counter."""
    if not isinstance(loop.target, cst.Name):
        return None
    for node in evaluator.tree.below(loop.body, cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            continue
        index = node.slice[0].slice.value
        if isinstance(index, cst.Name) and index.value == loop.target.value:
            owner = evaluator.value(node.value)
            if owner.kind is Kind.DATASET:
                return min(owner.evidence, Evidence.INFERRED)
    return None
