"""Tensors that an object keeps on the host on purpose, to read them there."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import literal, method_call

_MAX_DEPTH = 2


def is_kept_on_host(expression: cst.BaseExpression | None, evaluator: Evaluator, depth: int = _MAX_DEPTH) -> bool:
    """Return whether an expression reads an attribute that its class brings to the host: ``self.x = self.x.cpu()``.

    Also by variables: ``sigma = self.sigmas[i]``.
    """
    for part in evaluator.tree.descendants(expression) if expression is not None else ():
        if isinstance(part, cst.Attribute) and isinstance(part.value, cst.Name):
            owner = evaluator.definitions.receiver(part.value)
            bound = evaluator.definitions.attribute(owner, part.attr.value) if owner is not None else []
            if any(_brings(binding.value) for binding in bound):
                return True
        elif isinstance(part, cst.Name) and depth > 0:
            bindings = evaluator.flow.definitions(part)
            assigned = (b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT)
            if any(is_kept_on_host(value, evaluator, depth - 1) for value in assigned):
                return True
    return False


def _brings(value: cst.BaseExpression | None) -> bool:
    method = method_call(value, "cpu", "to")
    if method is None or not isinstance(value, cst.Call):
        return False
    return method.attr.value == "cpu" or any(literal(argument.value) == "cpu" for argument in value.args)
