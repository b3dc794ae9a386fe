"""Sums that start with a number and to which a loop adds tensors: ``total = 0``, ``total = total + loss``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Value, join
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def added_up(definitions: list[Binding], evaluator: Evaluator) -> Value:
    """Return the tensor that a loop adds up to a number, given all definitions of a name; UNKNOWN if none is."""
    sums = _sums(definitions, evaluator)
    found = join([evaluator.bound(each) for each in sums]) if sums else UNKNOWN
    return found.weakened(Evidence.INFERRED) if found.is_tensor else UNKNOWN


def beside_totals(function: cst.FunctionDef, evaluator: Evaluator) -> list[cst.BaseExpression] | None:
    """Return what a function gives besides sums over a loop and averages by them; None where it gives no such."""
    parts: list[cst.BaseExpression] = []
    for result in evaluator.definitions.results(function):
        parts += [each.value for each in result.elements] if isinstance(result, cst.Tuple) else [result]
    others = [part for part in parts if not _is_total(part, evaluator)]
    return others if len(others) < len(parts) else None


def _is_total(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether an expression is a sum over a loop, or an average by one: ``total / len(loader)``."""
    while isinstance(expression, cst.BinaryOperation):
        expression = expression.left
    definitions = evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
    return bool(_sums(definitions, evaluator))


def _sums(definitions: list[Binding], evaluator: Evaluator) -> list[Binding]:
    """The statements that add to what other definitions start with a number, if there is nothing else."""
    starts = [each for each in definitions if _is_number(each)]
    sums = [each for each in definitions if each not in starts]
    return sums if starts and all(_adds(each, starts, evaluator) for each in sums) else []


def _is_number(start: Binding) -> bool:
    value = literal(start.value) if start.kind is BindingKind.ASSIGNMENT and not start.path else None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _adds(added: Binding, starts: list[Binding], evaluator: Evaluator) -> bool:
    """Whether a statement adds to a name, in a loop in which nothing starts it again."""
    if added.kind is BindingKind.ASSIGNMENT:
        names = evaluator.tree.below(added.value, cst.Name) if isinstance(added.value, cst.BinaryOperation) else ()
        is_sum = not added.path and any(name.value == added.name for name in names)
    else:
        is_sum = added.kind is BindingKind.AUGMENTED
    loop = evaluator.tree.enclosing(added.node, *LOOPS, cst.FunctionDef)
    is_in_loop = isinstance(loop, LOOPS) and not any(evaluator.tree.within(each.node, loop) for each in starts)
    return is_sum and is_in_loop
