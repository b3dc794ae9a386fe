"""Functions without a name of their own that an assignment gives one: ``mse = lambda x, y: ((x - y) ** 2).mean()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Value, join

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def called(call: cst.Call, evaluator: Evaluator) -> cst.Lambda | None:
    """Return the function that a call by a name runs, if an assignment gave it that name and nothing else has it."""
    bindings = evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else []
    binding = bindings[0] if len(bindings) == 1 else None
    if binding is None or binding.kind is not BindingKind.ASSIGNMENT or binding.path:
        return None
    return binding.value if isinstance(binding.value, cst.Lambda) else None


def passed(function: cst.Lambda, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return what the calls by its name pass for a parameter."""
    statement = evaluator.tree.parent(function)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None
    names = function.params.params
    if not isinstance(target, cst.Name) or not any(each is param for each in names):
        return UNKNOWN
    values: list[Value] = []
    for name in evaluator.tree.named(target.value):
        call = evaluator.tree.parent(name)
        if not isinstance(call, cst.Call) or call.func is not name or called(call, evaluator) is not function:
            continue
        if any(argument.star or argument.keyword is not None for argument in call.args):
            return UNKNOWN
        given = dict(zip(map(id, names), call.args, strict=False)).get(id(param))
        if given is None:
            return UNKNOWN
        values.append(evaluator.value(given.value))
    return join(values).weakened(Evidence.INFERRED) if values else UNKNOWN
