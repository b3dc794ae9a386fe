"""Tensors that say how well predictions agree with what is right: numbers to report, on which nothing depends."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import method_call

_SAME = ("float", "double", "half", "to", "type", "cpu", "cuda", "detach")
_AVERAGES = frozenset(("torch.mean", "torch.Tensor.mean"))
_DEPTH = 4


def is_score(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether a tensor is an average, also by variables: ``(logits.argmax(1) == y).float().mean()``."""
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        values = [b.value if b.kind is BindingKind.ASSIGNMENT and not b.path else None for b in bindings]
        return (
            depth < _DEPTH
            and bool(values)
            and all(value is not None and is_score(value, evaluator, depth + 1) for value in values)
        )
    if not isinstance(expression, cst.Call):
        return False
    if evaluator.names.qualified(expression.func) in _AVERAGES:
        return True
    method = method_call(expression, *_SAME, "mean")
    return method is not None and (method.attr.value == "mean" or is_score(method.value, evaluator, depth))
