"""Code that TorchScript compiles: it knows fewer functions than Python does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_CHOICES = (cst.IfExp, cst.BooleanOperation)
_DISPLAYS = (cst.Tuple, cst.List)


def is_script(node: cst.CSTNode, model: Model) -> bool:
    """Return whether TorchScript may compile the function around a node, as far as the file shows.

    That is a function that it is asked to compile, each method of a module in a file that asks for anything of the
    kind, and what these call.
    """
    return _is_compiled(model.enclosing_function(node), model, frozenset())


def _is_compiled(function: cst.FunctionDef | None, model: Model, seen: frozenset[int]) -> bool:
    if function is None or id(function) in seen:
        return False
    if any(_is_compiler(decorator.decorator, model) for decorator in function.decorators):
        return True
    calls = [call for call in model.nodes(cst.Call) if _is_compiler(call.func, model)]
    given = (argument.value for call in calls for argument in call.args)
    if any(model.definition(value) is function for value in given):
        return True
    if not calls and not any(_is_compiler(d.decorator, model) for d in model.nodes(cst.Decorator)):
        return False
    if may_become_script(function.body, model):
        return True
    around = (model.enclosing_function(call) for call in model.callers(function))
    return any(_is_compiled(caller, model, seen | {id(function)}) for caller in around)


def _is_compiler(expression: cst.CSTNode, model: Model) -> bool:
    return (model.qualified_name(expression) or "").startswith("torch.jit.")


def may_become_script(node: cst.CSTNode, model: Model) -> bool:
    """Return whether a node stands in a method of a module, which another file may compile."""
    function = model.enclosing_function(node)
    owner = model.definitions.owner(function) if function is not None else None
    return owner is not None and model.definitions.class_kind(owner) is Kind.MODULE


def is_handed_on(module: cst.BaseExpression, model: Model) -> bool:
    """Return whether a module went through a value, by which TorchScript cannot call it.

    A loop takes it out of a part of a list (``for i, layer in enumerate(self.layers[1:])``) or out of a tuple, a choice
    or an unpacking gives it a name.
    """
    bindings = model.reaching(module) if isinstance(module, cst.Name) else []
    for binding in bindings:
        iterates = binding.kind is BindingKind.ITERATION
        if isinstance(binding.value, _CHOICES) or (iterates and isinstance(binding.value, _DISPLAYS)):
            return True
        if binding.value is not None and (
            (iterates and model.tree.below(binding.value, cst.Slice))
            or (not iterates and binding.path and isinstance(binding.value, _DISPLAYS))
        ):
            return True
    return False
