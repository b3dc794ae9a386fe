"""Loops in which a module samples with a network that it was made with, as wrappers for diffusion do."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind

_MAX_DEPTH = 3


def samples(
    loop: cst.For | cst.While,
    owner: cst.ClassDef,
    evaluator: Evaluator,
    own_calls: Callable[[cst.CSTNode], list[cst.Call]],
) -> bool:
    """Return whether each iteration of a loop in a method of a module runs its network without gradients.

    Loops over layers, as in a forward pass, are no such loops.
    """
    function = evaluator.definitions.enclosing_function(loop)
    if function is None or function.name.value == "forward" or not evaluator.gradients.function_disabled(function):
        return False
    return any(_reaches(call, owner, evaluator, 0) for call in own_calls(loop))


def _reaches(call: cst.Call, owner: cst.ClassDef, evaluator: Evaluator, depth: int) -> bool:
    """Whether a call runs a network that the object was given, itself or by methods of the object."""
    called = call.func
    if not isinstance(called, cst.Attribute) or not isinstance(called.value, cst.Name):
        return False
    if evaluator.definitions.receiver(called.value) is None:
        return False
    method = evaluator.definitions.method(owner, called.attr.value)
    if method is None:
        return evaluator.value(called).kind is Kind.MODULE and _is_given(called.attr.value, owner, evaluator)
    if depth == _MAX_DEPTH:
        return False
    return any(_reaches(inner, owner, evaluator, depth + 1) for inner in evaluator.tree.below(method.body, cst.Call))


def _is_given(name: str, owner: cst.ClassDef, evaluator: Evaluator) -> bool:
    """Whether an attribute is what the constructor was given: ``self.model = model``."""
    for held in evaluator.definitions.attribute(owner, name):
        bindings = evaluator.scopes.bindings(held.value) if isinstance(held.value, cst.Name) else []
        if any(binding.kind is BindingKind.PARAMETER for binding in bindings):
            return True
    return False
