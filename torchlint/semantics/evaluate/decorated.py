"""Functions whose decorators make something else of what they return: ``@to_numbers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import parameters

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def gives_other(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a decorator that the file defines does not hand on what a function returns as it is."""
    made = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators)
    written = (evaluator.definitions.definition(each) for each in made)
    return any(_changes(each, evaluator) for each in written if isinstance(each, cst.FunctionDef))


def _changes(decorator: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a function within a decorator calls the decorated one and returns anything but what that gives."""
    inner = evaluator.tree.below(decorator.body, cst.FunctionDef)
    names = {parameter.name.value for each in (decorator, *inner) for parameter in parameters(each)}
    for wrapper in inner:
        own = {parameter.name.value for parameter in parameters(wrapper)}
        decorated = names - own
        calls = [call for call in evaluator.tree.below(wrapper.body, cst.Call) if _is_one_of(call.func, decorated)]
        results = evaluator.definitions.results(wrapper)
        if calls and not all(_is_given(result, calls, evaluator) for result in results):
            return True
    return False


def _is_one_of(called: cst.BaseExpression, names: set[str]) -> bool:
    return isinstance(called, cst.Name) and called.value in names


def _is_given(result: cst.BaseExpression, calls: list[cst.Call], evaluator: Evaluator) -> bool:
    """Whether a result is that of the decorated function, by a variable perhaps, or a function."""
    if isinstance(result, cst.Await):
        result = result.expression
    if isinstance(evaluator.definitions.definition(result), cst.FunctionDef) or any(result is call for call in calls):
        return True
    bindings = evaluator.flow.definitions(result) if isinstance(result, cst.Name) else []
    values = [binding.value if not binding.path else None for binding in bindings]
    return bool(values) and all(any(value is call for call in calls) for value in values)
