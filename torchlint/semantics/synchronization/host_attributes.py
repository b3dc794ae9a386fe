"""Tensors that are on the host on purpose, to be read there: an object keeps them, or they are made of settings."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.synchronization.host_detours import OTHER_DEVICES, PROPERTIES
from torchlint.semantics.tables.torch_api import DATA_FACTORIES
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.walk import children

_MAX_DEPTH = 2
_MOVES = ("to", "cuda", *OTHER_DEVICES)


def is_kept_on_host(expression: cst.BaseExpression | None, evaluator: Evaluator, depth: int = _MAX_DEPTH) -> bool:
    """Return whether an expression reads an attribute that its class brings to the host: ``self.x = self.x.cpu()``.

    Also by variables: ``sigma = self.sigmas[i]``. So does a variable that each branch makes of what a setting may be.
    """
    for part in _operands(expression, evaluator) if expression is not None else ():
        if isinstance(part, cst.Attribute) and isinstance(part.value, cst.Name):
            owner = evaluator.definitions.receiver(part.value)
            bound = evaluator.definitions.attribute(owner, part.attr.value) if owner is not None else []
            if any(_brings(binding.value) for binding in bound):
                return True
        elif isinstance(part, cst.Name) and depth > 0:
            bindings = evaluator.flow.definitions(part)
            assigned = [b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT and b.value is not None]
            if len(assigned) == len(bindings) and _are_made_of_settings(assigned, evaluator):
                return True
            if any(is_kept_on_host(value, evaluator, depth - 1) for value in assigned):
                return True
    return False


def _operands(expression: cst.BaseExpression, evaluator: Evaluator) -> Iterator[cst.BaseExpression]:
    """Yield the variables of whose values an expression is computed, where those are: not ``x.shape``, ``x.to(y)``."""
    waiting: list[cst.CSTNode] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Attribute) and node.attr.value in PROPERTIES:
            continue
        if isinstance(node, (cst.Name, cst.Attribute)):
            yield node
        if isinstance(node, cst.Attribute):
            waiting.append(node.value)
        elif isinstance(node, cst.Call):
            if method_call(node, *_MOVES) is not None and not _only_casts(node, evaluator):
                continue
            waiting += [node.func, *(argument.value for argument in node.args)]
        elif isinstance(node, cst.Subscript):
            waiting.append(node.value)
        else:
            waiting += children(node)


def _only_casts(move: cst.Call, evaluator: Evaluator) -> bool:
    given = [argument.value for argument in move.args]
    return bool(given) and all(evaluator.value(each).kind is Kind.DTYPE or literal(each) == "cpu" for each in given)


def _are_made_of_settings(made: list[cst.BaseExpression], evaluator: Evaluator) -> bool:
    """Whether one is made on the host, and all others, ``torch.as_tensor(x)``, would be there if ``x`` is a list."""
    others = [value for value in made if evaluator.value(value).device is not Device.CPU]
    return 0 < len(others) < len(made) and all(
        isinstance(value, cst.Call)
        and evaluator.names.qualified(value.func) in DATA_FACTORIES
        and not any(argument.keyword is not None and argument.keyword.value == "device" for argument in value.args)
        for value in others
    )


def _brings(value: cst.BaseExpression | None) -> bool:
    method = method_call(value, "cpu", "to")
    if method is None or not isinstance(value, cst.Call):
        return False
    return method.attr.value == "cpu" or any(literal(argument.value) == "cpu" for argument in value.args)
