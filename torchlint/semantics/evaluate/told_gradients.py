"""Where a function records nothing for one call of it: ``with torch.set_grad_enabled(train)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate.script_modes import SETTERS
from torchlint.semantics.tables.torch_api import NO_GRAD_CONTEXTS
from torchlint.syntax.calls import bind
from torchlint.syntax.statements import statements_before

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def disabled_for(node: cst.CSTNode, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a call tells a function to switch gradients off around a node, or before it."""
    child = node
    for ancestor in evaluator.tree.ancestors(node):
        if isinstance(ancestor, cst.With) and child is ancestor.body:
            contexts = [_switches(item.item, function, call, evaluator) for item in ancestor.items]
            decided = [each for each in contexts if each is not None]
            if decided:
                return decided[-1]
        elif isinstance(ancestor, cst.IndentedBlock):
            for line in reversed(statements_before(ancestor, child)):
                set_here = _set_by(line, function, call, evaluator)
                if set_here is not None:
                    return set_here
        elif ancestor is function:
            return False
        child = ancestor
    return False


def left_open_for(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a function of the file may switch gradients off for a call, which does not show whether."""
    function = evaluator.definitions.definition(call.func)
    if not isinstance(function, cst.FunctionDef):
        return False
    statements = evaluator.tree.below(function.body, cst.With)
    open_ones = (each for each in statements if evaluator.gradients.contexts.may_switch(each))
    return any(
        all(_switches(item.item, function, call, evaluator) is None for item in each.items) for each in open_ones
    )


def _set_by(line: cst.CSTNode, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator) -> bool | None:
    """What the statement ``torch.set_grad_enabled(train)`` does to gradients: True off, False on."""
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    value = statement.value if isinstance(statement, cst.Expr) else None
    is_setter = isinstance(value, cst.Call) and evaluator.names.qualified(value.func) in SETTERS
    return _switches(value, function, call, evaluator) if is_setter and value is not None else None


def _switches(
    context: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator
) -> bool | None:
    """What a context does to gradients where a call tells what it depends on: True off, False on, None unknown."""
    if isinstance(context, cst.Name):
        bindings = evaluator.told.bindings(context, function, call)
        held = bindings[0].part if len(bindings) == 1 else None
        context = held if held is not None else context
    context = evaluator.told.chosen(context, function, call)
    known = evaluator.gradients.switches_off(context)
    if known is not None or not isinstance(context, cst.Call):
        return known
    name = evaluator.names.qualified(context.func)
    mode = bind(context.args, ("mode",)).get("mode")
    if mode is None or name not in (*SETTERS, *NO_GRAD_CONTEXTS):
        return None
    told = evaluator.told.truth(mode, function, call)
    return None if told is None else told if name in NO_GRAD_CONTEXTS else not told
