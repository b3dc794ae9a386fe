"""Modules that run on the host, where the function that calls them has put them: ``model = model.cpu().eval()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import bind, method_call
from torchlint.syntax.canonical import canonical

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_MOVING = ("cpu", "cuda", "to", "xpu", "npu", "type", "to_empty")
_SAME = (*_MOVING, "eval", "train", "float", "double", "half", "bfloat16", "requires_grad_")
"""Methods that give the very module that they are called on."""


def runs_on_host(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call runs a module that was moved to the CPU before, and that its function moves nowhere else.

    What moves a thing that the module is a part of, or a copy of it, may move the module.
    """
    name = canonical(call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else ""
    function = evaluator.definitions.enclosing_function(call)
    moves = [m for m in evaluator.named_moves.get(name, ()) if evaluator.definitions.enclosing_function(m) is function]
    if not moves or not all(_is_to_host(move, evaluator) for move in moves):
        return False
    return any(_moves_itself(move, name) and _runs_before(move, call, evaluator) for move in moves)


def named_moves(evaluator: Evaluator) -> dict[str, list[cst.Call]]:
    """Return the moves of the file, by all variables that what is moved is made of."""
    found: dict[str, list[cst.Call]] = {}
    for call in evaluator.tree.nodes(cst.Call):
        method = method_call(call, *_MOVING)
        for node in evaluator.tree.descendants(method.value) if method is not None else ():
            above = evaluator.tree.parent(node)
            is_called = isinstance(above, cst.Call) and above.func is node  # what it gives is moved, not the module
            if isinstance(node, (cst.Name, cst.Attribute)) and not is_called:
                found.setdefault(canonical(node), []).append(call)
    return found


def _is_to_host(move: cst.Call, evaluator: Evaluator) -> bool:
    method = method_call(move, "cpu", "to")
    if method is None or method.attr.value == "cpu":
        return method is not None
    place = bind(move.args, ("device", "dtype")).get("device")
    value = evaluator.value(place) if place is not None else None
    if value is not None and value.kind is Kind.STRING:
        return value.literal == "cpu"
    return value is not None and value.kind is Kind.DEVICE and value.device is Device.CPU


def _moves_itself(move: cst.Call, name: str) -> bool:
    """Whether a move is one of a variable, not of something made of it."""
    moved: cst.BaseExpression = move
    while (method := method_call(moved, *_SAME)) is not None:
        moved = method.value
    return canonical(moved) == name


def _runs_before(move: cst.Call, call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a move has certainly been made when a call runs, and the variable is not bound again after it."""
    place = evaluator.tree.order(move)
    around = evaluator.flow.blocks(move)
    if place > evaluator.tree.order(call) or not around:
        return False
    if not any(block is around[0][0] for block, _ in evaluator.flow.blocks(call)):
        return False
    bound = evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else []
    return all(binding.order < place for binding in bound)
