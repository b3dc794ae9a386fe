"""Handlers that engines of Ignite call after each batch."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.roles import Role
from torchlint.syntax.calls import method_call

_EVENTS = frozenset(f"ITERATION_{when}" for when in ("STARTED", "COMPLETED"))
_ROLES = {"create_supervised_trainer": Role.STEP, "create_supervised_evaluator": Role.EVALUATION_LOOP}


def handled(function: cst.FunctionDef, evaluator: Evaluator) -> cst.Name | None:
    """Return the engine that calls a function for each batch: ``@trainer.on(Events.ITERATION_COMPLETED)``."""
    if not evaluator.scopes.imports("ignite"):
        return None
    for decorator in function.decorators:
        added = method_call(decorator.decorator, "on")
        if added is not None and isinstance(decorator.decorator, cst.Call):
            events = [argument.value for argument in decorator.decorator.args[:1]]
            named = [event for event in events if isinstance(event, cst.Attribute) and event.attr.value in _EVENTS]
            if named and isinstance(added.value, cst.Name):
                return added.value
    return None


def transformed(function: cst.Lambda, evaluator: Evaluator) -> cst.Name | cst.Call | None:
    """Return the engine whose output a lambda gets for each batch, by its name or as the call that makes it.

    ``Metric(output_transform=...).attach(trainer)``, ``create_supervised_trainer(..., output_transform=...)``
    """
    argument = evaluator.tree.parent(function)
    metric = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(metric, cst.Call) or not evaluator.scopes.imports("ignite"):
        return None
    if _role_of(metric, evaluator) is not None:
        return metric
    attached = evaluator.tree.parent(evaluator.tree.parent(metric) or metric)
    if not isinstance(attached, cst.Call) or method_call(attached, "attach") is None or not attached.args:
        return None
    engine = attached.args[0].value
    return engine if isinstance(engine, cst.Name) else None


def role(engine: cst.Name | cst.Call, evaluator: Evaluator) -> Role | cst.FunctionDef | None:
    """Return what an engine is for, or the function that it runs for each batch."""
    made: cst.BaseExpression | None = engine
    if isinstance(engine, cst.Name):
        bindings = evaluator.flow.definitions(engine)
        is_plain = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and not bindings[0].path
        made = bindings[0].value if is_plain else None
    if not isinstance(made, cst.Call):
        return None
    found = _role_of(made, evaluator)
    if found is not None:
        return found
    is_engine = _name(made, evaluator) == "Engine"
    step = evaluator.definitions.definition(made.args[0].value) if is_engine and made.args else None
    return step if isinstance(step, cst.FunctionDef) else None


def _role_of(made: cst.Call, evaluator: Evaluator) -> Role | None:
    """What a call of Ignite makes an engine for."""
    return _ROLES.get(_name(made, evaluator))


def _name(made: cst.Call, evaluator: Evaluator) -> str:
    return (evaluator.names.qualified(made.func) or "").rpartition(".")[2]
