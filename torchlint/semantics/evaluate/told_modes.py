"""In which mode a module is that a function runs for a call: ``self.training`` after ``model.eval()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same, root_of
from torchlint.syntax.statements import statements_before

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_MODES = ("eval", "train")


def mode_set(node: cst.CSTNode) -> str:
    """Return the mode into which a call puts a module: ``eval``, also by ``train(False)``, or ``train``; "" if none."""
    method = method_call(node, "eval", "train")
    if method is None or not isinstance(node, cst.Call):
        return ""
    off = method.attr.value == "train" and literal(bind(node.args, ("mode",)).get("mode")) is False
    return "eval" if off else method.attr.value


def trains(module: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator) -> bool | None:
    """Return in which mode a module is, as a function sees it, when a call runs that; None where nothing shows it."""
    seen = _as_seen(module, function, call, evaluator)
    here = evaluator.definitions.enclosing_function(call)
    if seen is None or _sets_mode(function, evaluator) or not _is_only_parameter(module, function, evaluator):
        return None
    found: bool | None = None
    child: cst.CSTNode = call
    for ancestor in evaluator.tree.ancestors(call):
        if isinstance(ancestor, LOOPS) and _sets_mode(ancestor, evaluator):
            return None  # by the pass before
        if isinstance(ancestor, (cst.IndentedBlock, cst.Module)):
            for line in reversed(statements_before(ancestor, child)):
                found = _sets(line, seen)
                if found is not None:
                    return found
                if _may_set_mode(line, evaluator) or _binds(line, seen, evaluator):
                    return None
        if ancestor is here:
            return None
        child = ancestor
    return None


def _is_only_parameter(module: cst.BaseExpression, function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a name is a parameter of a function that nothing binds again."""
    bindings = evaluator.flow.definitions(module) if isinstance(module, cst.Name) else []
    return len(bindings) == 1 and any(each.name is bindings[0].node for each in parameters(function))


def _as_seen(
    module: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator
) -> cst.BaseExpression | None:
    """The module as the caller names it: an argument, or the object whose method it calls, or which it calls."""
    if not isinstance(module, cst.Name):
        return None
    if evaluator.definitions.receiver(module) is not None:
        method = method_call(call, function.name.value)
        return method.value if method is not None else call.func
    parameter = next((each for each in parameters(function) if each.name.value == module.value), None)
    return argument_for(function, parameter, call, evaluator.definitions) if parameter is not None else None


def _sets(line: cst.CSTNode, module: cst.BaseExpression) -> bool | None:
    """Whether a statement lets a module train, ``model.train()``, or not: ``model.eval()``; None if neither."""
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    value = statement.value if isinstance(statement, (cst.Expr, cst.Assign)) else None
    method = method_call(value, *_MODES)
    if method is None or not is_same(method.value, module) or not isinstance(value, cst.Call):
        return None
    told = bind(value.args, ("mode",)).get("mode")
    return None if told is not None and not isinstance(literal(told), bool) else mode_set(value) == "train"


def _sets_mode(code: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a mode is set anywhere below a node."""
    return any(method_call(call, *_MODES) is not None for call in evaluator.tree.below(code, cst.Call))


def _binds(line: cst.CSTNode, module: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a statement binds the variable anew that holds a module, or the object of which it is an attribute."""
    targets = (target.target for target in evaluator.tree.below(line, cst.AssignTarget))
    bound = (place for target in targets for place in (target, *evaluator.tree.below(target, cst.Name)))
    return any(is_same(place, module) or identifier(place) == root_of(module) for place in bound)


def _may_set_mode(line: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a statement sets a mode, or calls a function of the file that does."""
    calls = evaluator.tree.below(line, cst.Call)
    called = (evaluator.definitions.definition(call.func) for call in calls)
    parts = (line, *(each.body for each in called if isinstance(each, cst.FunctionDef)))
    return any(_sets_mode(part, evaluator) for part in parts)
