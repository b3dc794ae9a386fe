"""What assignments give to what."""

from __future__ import annotations

import libcst as cst

_LISTED = (cst.Tuple, cst.List)


def pairs(statement: cst.Assign) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Return each target of an assignment with its value, ``a, b = c, d`` apart; none where several get one value."""
    if len(statement.targets) != 1:
        return []
    target, value = statement.targets[0].target, statement.value
    if not isinstance(target, _LISTED) or not isinstance(value, _LISTED):
        return [(target, value)]
    if len(target.elements) != len(value.elements):
        return []
    return [(one.value, other.value) for one, other in zip(target.elements, value.elements, strict=True)]
