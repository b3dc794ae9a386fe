"""Expressions that count the passes of a loop."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS
from torchlint.syntax.calls import identifier

_COUNTER = re.compile(
    r"^(i|j|n|it|iter|itr|iters?_?\w*|idx|index|step|steps|\w*_step|\w*_iter|\w*_iteration|iteration|n_iter|niter|batch_?(idx|i|id|nb|num)|"
    r"epoch|ep|global_step|num_updates|\w*counter|count|cnt|batches_done|update)$"
)
_COUNTED = re.compile(r"^get_(num|global|current|cur)?_?(step|update|iter|iteration|epoch|count)s?$")
_COUNTING = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide)
_MAX_DEPTH = 6


def is_counter(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an expression is a loop counter: bound by ``enumerate`` or ``range``, counted up, or named so."""
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, _COUNTING):
        return is_counter(expression.left, evaluator, depth) or is_counter(expression.right, evaluator, depth)
    if isinstance(expression, cst.Attribute):
        return bool(_COUNTER.match(expression.attr.value)) or evaluator.usage.is_counted(expression)
    if isinstance(expression, cst.Call):  # trainer.get_num_updates()
        return not expression.args and bool(_COUNTED.match(identifier(expression.func)))
    if not isinstance(expression, cst.Name):
        return False
    return counts_passes(expression, evaluator, depth) or bool(_COUNTER.match(expression.value))


def counts_passes(name: cst.Name, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether a variable is bound by ``enumerate`` or ``range``, or counted up."""
    for binding in evaluator.flow.definitions(name):
        if binding.kind is BindingKind.AUGMENTED or _is_bound_by_loop(binding, evaluator):
            return True
        assigned = binding.value if binding.kind is BindingKind.ASSIGNMENT and depth < _MAX_DEPTH else None
        if isinstance(assigned, cst.BinaryOperation) and is_counter(assigned, evaluator, depth + 1):
            return True  # done = step + 1
    return False


def _is_bound_by_loop(binding: Binding, evaluator: Evaluator) -> bool:
    if binding.kind is not BindingKind.ITERATION or not isinstance(binding.value, cst.Call):
        return False
    name = evaluator.names.qualified(binding.value.func)
    if name == "builtins.range" and not binding.path:
        return True
    if name == "builtins.enumerate" and binding.path == (0,):
        return True
    if name not in ITERATION_WRAPPERS and identifier(binding.value.func) not in ("tqdm", "trange"):
        return False
    return binding.path[:1] == (0,) or identifier(binding.value.func) == "trange" or not binding.path
