"""Whether a program may need a tensor on the host, where another factory would leave it on the device."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import method_call

_OF_HOST = frozenset(("numpy", "item", "tolist", "data", "map_"))
_READS = ("item", "tolist")
_JOINS = frozenset(("torch.stack", "torch.cat"))
_MAX_DEPTH = 3


def may_need_host(tensor: cst.CSTNode, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether a tensor, or a variable that holds it, is used as one on the host might be.

    For NumPy, as lengths, in a sum with what lies there: all that is no function of torch, and no list of which only
    such a function makes a tensor.
    """
    statement = evaluator.tree.parent(tensor)
    targets = [target.target for target in statement.targets] if isinstance(statement, cst.Assign) else []
    names = [target for target in targets if isinstance(target, cst.Name)]
    if not targets:
        return not _stays_on_device(tensor, evaluator, depth)
    uses = [name for target in names for name in evaluator.tree.named(target.value) if name is not target]
    return len(names) < len(targets) or not all(_stays_on_device(use, evaluator, depth) for use in uses)


def _stays_on_device(use: cst.CSTNode, evaluator: Evaluator, depth: int) -> bool:
    """Whether a use computes with a tensor, moves it, collects it or hands it back."""
    parent = evaluator.tree.parent(use)
    while isinstance(parent, cst.Attribute) and isinstance(call := evaluator.tree.parent(parent), cst.Call):
        if parent.attr.value in _OF_HOST:
            return parent.attr.value in _READS
        use, parent = call, evaluator.tree.parent(call)
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, (cst.Return, cst.Expr, cst.Assign, cst.Element))
    taker = evaluator.tree.parent(parent)
    collected = method_call(taker, "append")
    if collected is not None and isinstance(collected.value, cst.Name):
        return depth < _MAX_DEPTH and _is_only_joined(collected.value, evaluator, depth + 1)
    name = evaluator.names.qualified(taker.func) if isinstance(taker, cst.Call) else None
    return name is not None and name.startswith("torch.") and not name.startswith("torch.nn.utils.")


def _is_only_joined(items: cst.Name, evaluator: Evaluator, depth: int) -> bool:
    """Whether all that becomes of a list is one tensor on the device."""
    for name in evaluator.tree.named(items.value):
        parent = evaluator.tree.parent(name)
        call = evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        is_joined = isinstance(call, cst.Call) and evaluator.names.qualified(call.func) in _JOINS
        if is_joined and call is not None and may_need_host(call, evaluator, depth):
            return False
        is_filled = isinstance(parent, cst.Attribute) and parent.attr.value in ("append", "clear")
        if not (is_joined or is_filled or isinstance(parent, (cst.AssignTarget, cst.Return))):
            return False
    return True
