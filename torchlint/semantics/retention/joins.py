"""The tensor that a concatenation adds to, among those that it joins."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.beams import keeps_rows, reordered
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_JOINS = frozenset(("cat", "concat", "concatenate", "hstack", "vstack"))


def own_part(call: cst.Call, target: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the place of the target among the tensors that a call joins."""
    if not call.args or call.args[0].star:
        return None
    parts = call.args[0].value
    if isinstance(parts, (cst.Tuple, cst.List)):
        joined = [_unmoved(e.value) for e in parts.elements]
        if keeps_rows(call):  # the rows of a beam search are chosen anew each time
            joined = [part if is_same(part, target) else reordered(part) or part for part in joined]
        if all(is_same(part, target) for part in joined):
            return None  # doubling copies each element once on average
        return next((part for part in joined if is_same(part, target)), None)
    two = len(call.args) >= 2 and is_same(parts, target) and not is_same(call.args[1].value, target)
    return parts if two and identifier(call.func) == "append" else None


def part_of_row(call: cst.Call, target: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression | None:
    """Return the place of the target in what joins one of the rows of a block matrix.

    ``top = torch.cat([x, right], 1); x = torch.cat([top, bottom])``
    """
    parts = call.args[0].value if call.args else None
    elements = parts.elements if isinstance(parts, (cst.Tuple, cst.List)) else ()
    for element in elements:
        bindings = evaluator.flow.definitions(element.value) if isinstance(element.value, cst.Name) else []
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        is_joined = isinstance(made, cst.Call) and identifier(made.func) in _JOINS
        own = own_part(made, target) if isinstance(made, cst.Call) and is_joined else None
        if own is not None:
            return own
    return None


def _unmoved(expression: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``x`` of ``x.to(device)`` or ``x.detach()``."""
    while (method := method_call(expression, "to", "cuda", "cpu", "detach")) is not None:
        expression = method.value
    return expression
