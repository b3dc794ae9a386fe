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


def is_score(expression: cst.BaseExpression, read: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether a tensor that a call reads is the average of a test for equality, or any average that is told.

    ``(logits.argmax(1) == y).float().mean()``, ``errors.append(error.mean().item())``
    """
    averaged = _averaged(expression, evaluator, 0)
    if averaged is None:
        return False
    told = evaluator.tree.parent(read)
    return isinstance(told, (cst.Arg, cst.AugAssign, cst.FormattedStringExpression)) or _tests(averaged, evaluator, 0)


def _averaged(expression: cst.BaseExpression, evaluator: Evaluator, depth: int) -> cst.BaseExpression | None:
    """What an expression is the average of, also by a variable."""
    made = _made(expression, evaluator) if depth < _DEPTH else None
    if made is not None:
        return _averaged(made, evaluator, depth + 1)
    if not isinstance(expression, cst.Call):
        return None
    method = method_call(expression, *_SAME, "mean")
    if evaluator.names.qualified(expression.func) in _AVERAGES and expression.args:
        return expression.args[0].value
    if method is None:
        return None
    return method.value if method.attr.value == "mean" else _averaged(method.value, evaluator, depth)


def _tests(expression: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    """Whether an expression says of each element whether two are equal."""
    made = _made(expression, evaluator) if depth < _DEPTH else None
    if made is not None:
        return _tests(made, evaluator, depth + 1)
    if isinstance(expression, cst.Comparison):
        return all(isinstance(each.operator, cst.Equal) for each in expression.comparisons)
    if not isinstance(expression, cst.Call):
        return False
    if evaluator.names.qualified(expression.func) in _EQUALS or method_call(expression, "eq") is not None:
        return True
    method = method_call(expression, *_SAME)
    return method is not None and _tests(method.value, evaluator, depth)


def _made(name: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression | None:
    """What the one assignment that reaches a variable gives it."""
    bindings = evaluator.flow.definitions(name) if isinstance(name, cst.Name) else []
    is_assigned = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and not bindings[0].path
    return bindings[0].value if is_assigned else None
