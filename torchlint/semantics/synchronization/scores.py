"""Tensors that say how well predictions agree with what is right: numbers to report, on which nothing depends."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import method_call

_SAME = ("float", "double", "half", "to", "type", "cpu", "cuda", "detach")
_AVERAGES = frozenset(("torch.mean", "torch.Tensor.mean"))
_EQUALS = frozenset(("torch.eq", "torch.Tensor.eq"))
_DEPTH = 4


def is_score(expression: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a tensor is the average of a test for equality: ``(logits.argmax(1) == y).float().mean()``."""
    return _is_score(expression, evaluator, averaged=False, depth=0)


def _is_score(expression: cst.BaseExpression, evaluator: Evaluator, *, averaged: bool, depth: int) -> bool:
    if isinstance(expression, cst.Comparison):
        return averaged and all(isinstance(each.operator, cst.Equal) for each in expression.comparisons)
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        values = [b.value if b.kind is BindingKind.ASSIGNMENT and not b.path else None for b in bindings]
        return (
            depth < _DEPTH
            and bool(values)
            and all(
                value is not None and _is_score(value, evaluator, averaged=averaged, depth=depth + 1)
                for value in values
            )
        )
    if not isinstance(expression, cst.Call):
        return False
    name = evaluator.names.qualified(expression.func)
    method = method_call(expression, *_SAME, "mean", "eq")
    if name in _EQUALS or (method is not None and method.attr.value == "eq"):
        return averaged
    if name in _AVERAGES and expression.args:
        return _is_score(expression.args[0].value, evaluator, averaged=True, depth=depth)
    if method is None:
        return False
    return _is_score(method.value, evaluator, averaged=averaged or method.attr.value == "mean", depth=depth)
