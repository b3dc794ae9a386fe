"""Whether a tensor holds whole numbers, of which adding 1 loses nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.calls import identifier, literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DTYPES = frozenset(
    f"torch.{name}" for name in ("int64", "int32", "int16", "int8", "uint8", "long", "int", "short", "bool")
)
_OF_DATA = frozenset(("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor"))
_INFERRING = frozenset(("torch.arange", "torch.tensor", "torch.as_tensor"))
"""Functions that take the dtype from the numbers that they are given."""

_REFUSING = ("torch.nn.functional.softplus", "torch.nn.functional.logsigmoid", "torch.logsumexp")
_WRITTEN = (cst.Integer, cst.List, cst.Tuple, cst.UnaryOperation)
_COUNTS = frozenset(
    "count counts deg degree degrees dur durs duration durations len lens length lengths num number".split()
)


def is_whole(expression: cst.BaseExpression, model: Model) -> bool:
    """Return whether a tensor's dtype is one of whole numbers, or it is made of, or named after, what one counts."""
    if isinstance(expression, cst.Integer) or model.value(expression).dtype in _DTYPES:
        return True
    if isinstance(expression, cst.Call):
        made = model.callee(expression)
        if made == "torch.arange":
            return not any(argument.keyword or isinstance(argument.value, cst.Float) for argument in expression.args)
        if made in _OF_DATA and expression.args and _only_whole(expression.args[0].value):
            return True
    words = (word for part in model.descendants(expression) for word in re.split(r"_|\d", identifier(part).lower()))
    return not _COUNTS.isdisjoint(words)


def refuses_integers(function: str, term: cst.CSTNode, model: Model) -> bool:
    """Return whether a function does not take a tensor, which visibly has a dtype of whole numbers."""
    return function in _REFUSING and _is_integral(term, model)


def _is_integral(expression: cst.CSTNode, model: Model, depth: int = 3) -> bool:
    """Return whether a tensor visibly has a dtype of whole numbers, by name or by the numbers written in it."""
    if model.value(expression).dtype in _DTYPES:
        return True
    if isinstance(expression, cst.Name) and depth:
        bound = [binding.value for binding in model.reaching(expression) if not binding.path]
        return any(value is not None and _is_integral(value, model, depth - 1) for value in bound)
    if not isinstance(expression, cst.Call):
        return False
    made = model.callee(expression)
    if made not in _INFERRING or any(argument.keyword is not None for argument in expression.args):
        return made == "torch.randint"
    parts = [part for argument in expression.args for part in model.descendants(argument.value)]
    return bool(parts) and all(isinstance(part, _WRITTEN) or not isinstance(part, cst.BaseExpression) for part in parts)


def _only_whole(data: cst.BaseExpression) -> bool:
    """Whether data is written out, and of whole numbers: ``[1.0, 2]``."""
    if isinstance(data, (cst.List, cst.Tuple)):
        return bool(data.elements) and all(_only_whole(element.value) for element in data.elements)
    number = literal(data)
    return isinstance(number, (int, float)) and number == number // 1
