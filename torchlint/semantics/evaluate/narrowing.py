"""Branches that are taken only for tensors: ``if isinstance(x, torch.Tensor): ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def tensor_tests(evaluator: Evaluator) -> dict[str, list[tuple[cst.Name, cst.CSTNode]]]:
    """Return by variable where it is asked for a tensor, with the branch that is taken if it is one."""
    found: dict[str, list[tuple[cst.Name, cst.CSTNode]]] = {}
    for call in evaluator.tree.nodes(cst.Call):
        asked = call.args[0].value if call.args else None
        if isinstance(asked, cst.Name) and _asks(call, evaluator):
            branch = _branch(call, evaluator)
            if branch is not None:
                found.setdefault(asked.value, []).append((asked, branch))
    return found


def is_tensor_here(name: cst.Name, evaluator: Evaluator) -> bool:
    """Return whether a variable stands in a branch that is taken only if it holds a tensor, unless it is bound anew."""
    for asked, branch in evaluator.tensor_tests.get(name.value, ()):
        if evaluator.tree.within(name, branch):
            before, now = (evaluator.flow.definitions(each) for each in (asked, name))
            if any(binding.kind is BindingKind.PARAMETER for binding in now):
                return False  # a parameter that may be a number is an index or a size, often on the host
            if [id(binding.node) for binding in before] == [id(binding.node) for binding in now]:
                return True
    return False


def _asks(call: cst.Call, evaluator: Evaluator) -> bool:
    name = evaluator.names.qualified(call.func)
    if name == "torch.is_tensor":
        return len(call.args) == 1
    is_type_test = name == "builtins.isinstance" and len(call.args) == 2
    return is_type_test and evaluator.names.qualified(call.args[1].value) == "torch.Tensor"


def _branch(call: cst.Call, evaluator: Evaluator) -> cst.CSTNode | None:
    """Return the branch that is taken if a test holds, alone or with others that must hold as well."""
    node: cst.CSTNode = call
    parent = evaluator.tree.parent(node)
    while isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And):
        node, parent = parent, evaluator.tree.parent(parent)
    return parent.body if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is node else None
