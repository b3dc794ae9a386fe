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


def transformed(function: cst.Lambda, evaluator: Evaluator) -> cst.Name | None:
    """Return the engine whose output a lambda gets for each batch: ``Metric(output_transform=...).attach(trainer)``."""
    argument = evaluator.tree.parent(function)
    metric = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(metric, cst.Call) or not evaluator.scopes.imports("ignite"):
        return None
    attached = evaluator.tree.parent(evaluator.tree.parent(metric) or metric)
    if not isinstance(attached, cst.Call) or method_call(attached, "attach") is None or not attached.args:
        return None
    engine = attached.args[0].value
    return engine if isinstance(engine, cst.Name) else None


def role(engine: cst.Name, evaluator: Evaluator) -> Role | cst.FunctionDef | None:
    """Return what an engine is for, or the function that it runs for each batch."""
    bindings = evaluator.flow.definitions(engine)
    made = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT else None
    if not isinstance(made, cst.Call) or bindings[0].path:
        return None
    _, _, name = (evaluator.names.qualified(made.func) or "").rpartition(".")
    if name in _ROLES:
        return _ROLES[name]
    step = evaluator.definitions.definition(made.args[0].value) if name == "Engine" and made.args else None
    return step if isinstance(step, cst.FunctionDef) else None
