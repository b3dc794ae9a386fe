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
