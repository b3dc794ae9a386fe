"""Functions that are named for the loss that they compute, which only other files call: each step does."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence

_LOSS = re.compile(r"(^|_)loss(es)?$")
# What takes or shows the loss of a whole data set, or makes the function that computes one.
_ABOUT_LOSSES = re.compile(
    r"^_?(eval\w*|val|valid\w*|test|train|estimate|plot|draw|log|print|save|load|read|write|report|record|show|avg|average|"
    r"baseline|best|final|initial|min|max|mean|update|parse|make|build|create|init|set|add|check|reset|reduce)_"
)


def returns_loss(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is named for the loss that it returns as a tensor, and only other files call it."""
    name = function.name.value
    if not _LOSS.search(name) or _ABOUT_LOSSES.search(name) or evaluator.is_called(function):
        return False
    if evaluator.definitions.enclosing_function(function) is not None or function.asynchronous is not None:
        return False
    given = [evaluator.returned(function)]
    given += [evaluator.value(result) for result in evaluator.definitions.results(function)]
    firsts = (value.elements[0] if value.elements else value for value in given)
    is_tensor = any(first.is_tensor and first.evidence >= Evidence.INFERRED for first in firsts)
    return is_tensor or _returns_total(function, evaluator)


def _returns_total(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a function returns a variable, perhaps as the first of several, to which it adds tensors."""
    totals = {
        statement.target.value
        for statement in evaluator.tree.below(function.body, cst.AugAssign)
        if isinstance(statement.target, cst.Name) and evaluator.value(statement.value).is_tensor
    }
    returned = (statement.value for statement in evaluator.tree.below(function.body, cst.Return))
    firsts = (value.elements[0].value if isinstance(value, cst.Tuple) else value for value in returned)
    return bool(totals) and any(isinstance(first, cst.Name) and first.value in totals for first in firsts)
