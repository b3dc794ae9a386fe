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


def _only_whole(data: cst.BaseExpression) -> bool:
    """Whether data is written out, and of whole numbers: ``[1.0, 2]``."""
    if isinstance(data, (cst.List, cst.Tuple)):
        return bool(data.elements) and all(_only_whole(element.value) for element in data.elements)
    number = literal(data)
    return isinstance(number, (int, float)) and number == number // 1
