"""Numbers that the host reads from a tensor only to compute with other tensors, which take a tensor as well."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Device
from torchlint.syntax.calls import identifier

# Functions and methods of torch that take a tensor of one element where they take a number.
_TAKING = frozenset(
    (
        "fill_ masked_fill masked_fill_ index_fill index_fill_ clamp clamp_ clip add add_ sub sub_ mul mul_ div div_ "
        "pow"
    ).split()
)


def feeds_tensors(read: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether what is read only goes into tensors, at once or by a name of its own: ``x / x.max().item()``."""
    if _feeds(read, evaluator):
        return True
    users = evaluator.flow.named_reads(_chosen(read, evaluator))
    return bool(users) and all(_feeds(user, evaluator) for user in users)


def _chosen(node: cst.CSTNode, evaluator: Evaluator) -> cst.CSTNode:
    """The choice between two values of which a node is one."""
    while True:
        parent = evaluator.tree.parent(node)
        if not isinstance(parent, cst.IfExp) or node is parent.test:
            return node
        node = parent


def _feeds(node: cst.CSTNode, evaluator: Evaluator) -> bool:
    top = _chosen(node, evaluator)
    parent = evaluator.tree.parent(top)
    if isinstance(parent, cst.BinaryOperation):
        others = [evaluator.value(side) for side in (parent.left, parent.right) if side is not top]
        return any(other.is_tensor and other.device is not Device.CPU for other in others)
    call = evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    return identifier(call.func) in _TAKING and evaluator.value(call).is_tensor
