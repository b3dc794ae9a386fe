"""What a function gives for one call, where that tells it which of its results: ``accuracy(x, y, as_tensor=False)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate.decorated import gives_other
from torchlint.semantics.evaluate.told_gradients import disabled_for
from torchlint.semantics.values import Graph, Origin, Value, join, sequence

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def result_for(function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator) -> Value:
    """Return what a function of the file gives for a call of it."""
    results = evaluator.definitions.results(function)
    if not results or not evaluator.told.may_tell(function, call):
        return evaluator.returned(function)
    if function.decorators and gives_other(function, evaluator):
        return evaluator.returned(function)
    left = [each for each in results if not evaluator.told.leaves_out(each, function, call)]
    parts = [_value(each, function, call, evaluator) for each in left]
    told = [part for part in parts if part is not None]
    if not told and len(left) == len(results):
        return evaluator.returned(function)
    return join([evaluator.value(each) if part is None else part for each, part in zip(left, parts, strict=True)])


def _value(result: cst.BaseExpression, function: cst.FunctionDef, call: cst.Call, evaluator: Evaluator) -> Value | None:
    """What an expression comes to for a call, None if that is what it comes to for all."""
    chosen = evaluator.told.chosen(result, function, call)
    if isinstance(chosen, cst.Tuple):
        elements = [each.value for each in chosen.elements]
        parts = [_value(each, function, call, evaluator) for each in elements]
        if all(part is None for part in parts) or any(isinstance(e, cst.StarredElement) for e in chosen.elements):
            return None if chosen is result else evaluator.value(chosen)
        pairs = zip(elements, parts, strict=True)
        return sequence(*(evaluator.value(each) if part is None else part for each, part in pairs))
    found = evaluator.value(chosen) if chosen is not result else None
    if isinstance(chosen, cst.Name):
        every = evaluator.flow.definitions(chosen)
        bindings = evaluator.told.bindings(chosen, function, call)
        if bindings and len(bindings) < len(every):
            found = join([evaluator.bound(binding) for binding in bindings])
    if isinstance(chosen, cst.Call) and disabled_for(chosen, function, call, evaluator):
        found = without_graph(evaluator.value(chosen) if found is None else found)
    return found


def without_graph(value: Value) -> Value:
    """Return what a function gives where gradients are off."""
    elements = None if value.elements is None else tuple(map(without_graph, value.elements))
    element = None if value.element is None else without_graph(value.element)
    graph = Graph.DETACHED if value.is_tensor and value.origin is not Origin.PARAMETER else value.graph
    return value._replace(graph=graph, elements=elements, element=element)
