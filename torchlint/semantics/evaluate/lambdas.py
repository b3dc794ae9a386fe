"""Functions without a name of their own that an assignment gives one: ``mse = lambda x, y: ((x - y) ** 2).mean()``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind, targets
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Value, join
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_CALLS_AT_ONCE = re.compile(
    r"(^|_)(map|apply|reduce|filter|sort|sorted|min|max|step|cond|checkpoint|run|call|where)(_|$)"
)
"""What functions are called that call the function which they are given before they return."""


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


def calls_of(target: cst.BaseExpression, evaluator: Evaluator) -> Iterator[cst.Call]:
    """Yield the calls by a name that may run what is bound to it at one place, by an assignment or as a parameter."""
    for variable, _ in targets(target):
        for name in evaluator.tree.named(variable.value):
            call = evaluator.tree.parent(name)
            if not isinstance(call, cst.Call) or call.func is not name:
                continue
            if any(binding.node is variable for binding in evaluator.flow.definitions(name)):
                yield call


def runs_at_once(function: cst.Lambda, tree: Tree) -> bool:
    """Return whether a lambda is called where it stands, or handed to what calls it before it returns."""
    holder = tree.parent(function)
    call = tree.parent(holder) if isinstance(holder, cst.Arg) else holder
    if not isinstance(call, cst.Call):
        return False
    return call.func is function or bool(_CALLS_AT_ONCE.search(identifier(call.func)))
