"""Loops in which a module samples with a network that it was made with, as wrappers for diffusion do."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.handfuls import is_handful
from torchlint.semantics.values import Kind
from torchlint.syntax.canonical import is_same

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


def improves(
    loop: cst.For | cst.While, evaluator: Evaluator, own_calls: Callable[[cst.CSTNode], list[cst.Call]]
) -> bool:
    """Return whether each iteration binds anew what it has given a network, in a function that is handed both.

    ``for i in range(steps): x = x + step(model(x, sigmas[i]))``, without gradients and more than a few times
    """
    function = evaluator.definitions.enclosing_function(loop)
    if function is None or not evaluator.gradients.function_disabled(function) or is_handful(loop, evaluator):
        return False
    order, bound = evaluator.tree.order, evaluator.tree.below(loop.body, cst.AssignTarget)
    return any(
        _is_parameter(call.func, evaluator)
        and _is_parameter(call.args[0].value, evaluator)
        and evaluator.value(call.func).kind is Kind.MODULE
        and any(order(each) > order(call) and is_same(each.target, call.args[0].value) for each in bound)
        for call in own_calls(loop)
        if call.args
    )


def _is_parameter(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a variable is one that a function is given, at first."""
    bindings = evaluator.scopes.bindings(expression) if isinstance(expression, cst.Name) else []
    return any(binding.kind is BindingKind.PARAMETER for binding in bindings)


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
        if held.value is not None and _is_parameter(held.value, evaluator):
            return True
    return False
