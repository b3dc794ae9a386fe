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
INTEGER_MODULES = frozenset(
    f"torch.{root}quantization.{name}" for root in ("", "ao.") for name in ("convert", "quantize", "quantize_dynamic")
)
"""What makes modules of integers, which run on the host and build no graph."""
_SAME = (*_MOVING, "eval", "train", "float", "double", "half", "bfloat16", "requires_grad_")
"""Methods that give the very module that they are called on."""


def runs_on_host(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call runs a module that was moved to the CPU before, and that its function moves nowhere else.

    What moves a thing that the module is a part of, or a copy of it, may move the module. What is given tensors that
    the function brought to the CPU is there too, and so is a module of integers, for which there are no other kernels.
    """
    if any(_is_brought(argument.value, evaluator) for argument in call.args):
        return True
    name = canonical(call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else ""
    function = evaluator.definitions.enclosing_function(call)
    moves = [m for m in evaluator.named_moves.get(name, ()) if evaluator.definitions.enclosing_function(m) is function]
    if not all(_is_to_host(move, evaluator) for move in moves):
        return False
    made = (
        [b.value for b in evaluator.flow.definitions(call.func) if not b.path]
        if isinstance(call.func, cst.Name)
        else []
    )
    if made and all(value is not None and _is_made_there(value, evaluator) for value in made):
        return True
    return any(_moves_itself(move, name) and _runs_before(move, call, evaluator) for move in moves)


def _is_brought(given: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a variable holds nothing but what the function moved to the CPU: ``x = x.to(torch.device("cpu"))``."""
    bound = evaluator.flow.definitions(given) if isinstance(given, cst.Name) else []
    moves = [b.part for b in bound if isinstance(b.part, cst.Call) and method_call(b.part, "cpu", "to") is not None]
    return bool(bound) and len(moves) == len(bound) and all(_is_to_host(move, evaluator) for move in moves)


def _is_made_there(value: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether what a variable is bound to was moved to the CPU where it was made, or is a module of integers."""
    while (method := method_call(value, *_SAME)) is not None:
        move = value
        if isinstance(move, cst.Call) and _is_to_host(move, evaluator):
            return True
        value = method.value
    return isinstance(value, cst.Call) and evaluator.names.qualified(value.func) in INTEGER_MODULES


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
