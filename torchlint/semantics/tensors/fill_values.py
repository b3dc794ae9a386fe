"""Tensors of one number: what to write so that the device fills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_LONG = 80
"""From how many characters on the other arguments are left out."""


def filled_on_device(call: cst.Call, data: cst.BaseExpression, model: Model) -> str:
    """Return the call that fills memory of the device with the number that is the data; "" where there are several."""
    elements = [element.value for element in data.elements] if isinstance(data, (cst.List, cst.Tuple)) else []
    numbers = {model.code(element) for element in elements} if elements else {model.code(data)}
    if len(numbers) > 1 or model.value(elements[0] if elements else data).kind is not Kind.NUMBER:
        return ""
    others = [a for a in call.args if a.value is not data]
    given = ", ".join(f"{a.keyword.value}={model.code(a.value)}" for a in others if a.keyword is not None)
    if len(given) > _LONG or not all(a.keyword for a in others):
        given = "device=..."
    size = f"({len(elements)},)" if elements else "()"
    return f"{model.code(call.func).rpartition('.')[0] or 'torch'}.full({size}, {numbers.pop()}, {given})"
