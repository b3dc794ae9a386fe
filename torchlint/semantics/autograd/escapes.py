"""What a program does outside of a block with tensors that were made in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_HOST = frozenset((Kind.NUMBER, Kind.STRING, Kind.SEQUENCE, Kind.NDARRAY))


def changes_outside(block: cst.With | cst.FunctionDef, model: Model) -> bool:
    """Return whether something is changed in place outside of a block: there nothing shows what made it."""
    for node in model.nodes(cst.AugAssign):
        if not model.within(node, block) and model.value(node.target).kind not in _HOST:
            return True
    if any(_changes(call) and not model.within(call, block) for call in model.nodes(cst.Call)):
        return True
    targets = (target for target in model.nodes(cst.AssignTarget) if isinstance(target.target, cst.Subscript))
    return any(not model.within(target, block) for target in targets)


def _changes(call: cst.Call) -> bool:
    """Whether a call changes a tensor: ``x.add_(1)``, ``torch.add(x, 1, out=y)``, ``F.relu(x, inplace=True)``."""
    name = identifier(call.func)
    if name.endswith("_") and not name.startswith("_"):
        return True
    given = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    is_written = "out" in given and not is_none(given["out"])
    return is_written or (name.islower() and literal(given.get("inplace")) is True)


def runs_outside(block: cst.With | cst.FunctionDef, model: Model) -> bool:
    """Return whether a module runs with gradients outside of a block, and of all classes."""
    for call in model.nodes(cst.Call):
        if not isinstance(call.func, (cst.Name, cst.Attribute)) or model.within(call, block):
            continue
        value = model.value(call.func)
        is_module = value.kind is Kind.MODULE and value.evidence >= Evidence.INFERRED
        if is_module and model.enclosing(call, cst.ClassDef) is None and not model.evaluator.gradients.disabled(call):
            return True
    return False
