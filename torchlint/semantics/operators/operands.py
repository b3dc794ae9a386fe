"""What a function of torch, or a method of a tensor of the same name, is applied to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.syntax.calls import Arguments, identifier

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.Tensor")


class Applied(NamedTuple):
    """One operation: the tensor that it works on, and the other arguments by name."""

    operand: cst.BaseExpression
    arguments: Arguments
    evidence: Evidence


def applied(node: cst.CSTNode | None, operation: str, model: Model, *others: str) -> Applied | None:
    """Return the operation of this name that a call is, None if it is something else, or not certainly of torch.

    ``others`` are the names of the positional arguments after the tensor.
    """
    if not isinstance(node, cst.Call) or identifier(node.func) != operation:
        return None
    name = model.qualified_name(node.func)
    if name is not None:
        if name.rpartition(".")[0] not in _HOMES:
            return None
        given = model.arguments(node, ("input", *others))
        operand = given.nodes.get("input")  # that of a mapping which is written out is none
        return Applied(operand.value, given, Evidence.PROVEN) if operand is not None and not given.open else None
    if not isinstance(node.func, cst.Attribute):
        return None
    value = model.value(node.func.value)
    given = model.arguments(node, others)
    return Applied(node.func.value, given, value.evidence) if value.is_tensor and not given.open else None
