"""Tensors whose rows are put into another order while their columns grow, as the beams of a search."""

from __future__ import annotations

import libcst as cst

from torchlint.syntax.calls import bind, literal, method_call


def reordered(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``x`` of ``x[order]`` or ``x.index_select(0, order)``, None for anything else, such as a slice."""
    if isinstance(value, cst.Subscript) and len(value.slice) == 1:
        index = value.slice[0].slice
        return value.value if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) else None
    method = method_call(value, "index_select")
    given = bind(value.args, ("dim", "index")) if method is not None and isinstance(value, cst.Call) else None
    dim = given.get("dim") if given is not None else None
    return method.value if method is not None and dim is not None and literal(dim) == 0 else None


def keeps_rows(joining: cst.Call) -> bool:
    """Return whether what joins tensors adds no rows."""
    given = bind(joining.args, ("tensors", "dim"))
    dim = given.get("dim") or given.get("axis")
    place = literal(dim) if dim is not None else None
    return isinstance(place, int) and place != 0
