"""Rows of a tensor on the host that a step picks by what a loader gives: ``features[batch.n_id]``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tensors.assembled import assembled
from torchlint.semantics.tensors.pinned import KEEPING, Pinned
from torchlint.semantics.values import Device, Kind, Origin
from torchlint.syntax.calls import method_call
from torchlint.syntax.canonical import is_same

_MAY_HOLD = (Kind.TENSOR, Kind.UNKNOWN)
_MOVES = ("to", "cuda")
_BOUND = (BindingKind.ASSIGNMENT, BindingKind.PARAMETER)


_DRAWS = frozenset(
    ("torch.randint", "torch.randperm", *(f"numpy.random.{name}" for name in ("randint", "choice", "permutation")))
)


def made_on_host(tensor: cst.BaseExpression, evaluator: Evaluator, pinned: Pinned) -> cst.Call | cst.Subscript | None:
    """Return the call that joins a batch out of arrays, or what picks its rows, where the host makes it in a step."""
    joined = assembled(tensor, evaluator) if pinned.is_pageable(tensor) else None
    return joined or _gathered(tensor, evaluator)


def _gathered(tensor: cst.BaseExpression, evaluator: Evaluator) -> cst.Subscript | None:
    """The expression that picks the rows, where a tensor is gathered of one that lies on the host."""
    while (kept := method_call(tensor, *KEEPING)) is not None and evaluator.names.qualified(kept) is None:
        tensor = kept.value
    if not isinstance(tensor, cst.Subscript) or len(tensor.slice) != 1:
        return None
    index = tensor.slice[0].slice
    if not isinstance(index, cst.Index) or not _is_of_batch(index.value, evaluator):
        return None
    return tensor if _stays_on_host(tensor.value, evaluator) else None


def _is_of_batch(index: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether rows are picked by a tensor that a loader gives, wherever it has been moved to, or at random."""
    moved = method_call(index, *_MOVES, "cpu")
    given = evaluator.value(moved.value if moved is not None else index)
    return (given.origin is Origin.BATCH and given.kind is not Kind.NUMBER) or _is_drawn(index, evaluator)


def _is_drawn(index: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether rows are drawn in each pass: ``rows = torch.randint(len(data), (batch_size,))``."""
    bindings = evaluator.flow.definitions(index) if isinstance(index, cst.Name) else []
    made = bindings[0].part if len(bindings) == 1 else index
    if isinstance(made, cst.Subscript):  # `torch.randperm(len(data))[:batch_size]`
        made = made.value
    return isinstance(made, cst.Call) and evaluator.names.qualified(made.func) in _DRAWS


def _stays_on_host(whole: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether the tensor that rows are taken from is there before the loop, and nothing of its name is moved."""
    held = evaluator.value(whole)
    if held.origin is Origin.BATCH or held.kind not in _MAY_HOLD or held.device not in (Device.CPU, Device.UNKNOWN):
        return False
    parts = [root := whole]
    while isinstance(root, cst.Attribute):
        parts.append(root := root.value)
    bindings = evaluator.scopes.bindings(root) if isinstance(root, cst.Name) else []
    loop = evaluator.tree.enclosing(whole, *LOOPS)
    if loop is None or not bindings or any(evaluator.tree.within(binding.node, loop) for binding in bindings):
        return False
    if any(b.kind not in _BOUND or method_call(b.value, *_MOVES) is not None for b in bindings):
        return False
    moved = map(method_call, evaluator.tree.calls_named(*_MOVES))
    return not any(is_same(one.value, part) for one in moved if one is not None for part in parts)
