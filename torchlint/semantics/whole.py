"""Whether a tensor holds whole numbers, of which adding 1 loses nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.syntax.calls import identifier

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DTYPES = frozenset(
    f"torch.{name}" for name in ("int64", "int32", "int16", "int8", "uint8", "long", "int", "short", "bool")
)
_COUNTS = frozenset(
    "count counts deg degree degrees dur durs duration durations len lens length lengths num number".split()
)


def is_whole(expression: cst.BaseExpression, model: Model) -> bool:
    """Return whether a tensor's dtype is one of whole numbers, or it is made of, or named after, what one counts."""
    if isinstance(expression, cst.Integer) or model.value(expression).dtype in _DTYPES:
        return True
    if isinstance(expression, cst.Call) and model.callee(expression) == "torch.arange":
        return not any(argument.keyword or isinstance(argument.value, cst.Float) for argument in expression.args)
    words = (word for part in model.descendants(expression) for word in re.split(r"_|\d", identifier(part).lower()))
    return not _COUNTS.isdisjoint(words)
