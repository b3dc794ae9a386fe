"""Tensors that the host makes of parts of a batch: ``torch.cat([batch[:, :n], zeros], dim=1)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Device, Kind, Origin
from torchlint.syntax.calls import method_call

_JOINS = frozenset(("torch.cat", "torch.concat", "torch.concatenate", "torch.stack", "torch.hstack", "torch.vstack"))
_CASTS = ("float", "half", "double", "long", "int", "bool", "contiguous")
_MAX_DEPTH = 3


def joins_batch(expression: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an expression joins tensors on the host, one of which is a part of a batch."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(expression, cst.Name):
        bindings = evaluator.flow.definitions(expression)
        values = [b.value for b in bindings if not b.path]
        return len(values) == len(bindings) == 1 and _is_join(values[0], evaluator, depth)
    return _is_join(expression, evaluator, depth)


def _is_join(value: cst.CSTNode | None, evaluator: Evaluator, depth: int) -> bool:
    cast = method_call(value, *_CASTS) if value is not None else None
    if cast is not None:
        return joins_batch(cast.value, evaluator, depth + 1)
    if not isinstance(value, cst.Call) or not value.args or evaluator.names.qualified(value.func) not in _JOINS:
        return False
    parts = value.args[0].value
    if isinstance(parts, (cst.ListComp, cst.GeneratorExp)):
        given = [evaluator.value(parts.elt)]
    elif isinstance(parts, (cst.List, cst.Tuple)):
        given = [evaluator.value(element.value) for element in parts.elements]
    elif isinstance(parts, cst.Name):  # views of the same images, as a loader collates them
        given = [evaluator.value(parts)]
    else:
        return False
    is_batch = [v.origin is Origin.BATCH and v.kind in (Kind.TENSOR, Kind.BATCH) for v in given]
    return any(is_batch) and all(v.device in (Device.CPU, Device.UNKNOWN) for v in given)
