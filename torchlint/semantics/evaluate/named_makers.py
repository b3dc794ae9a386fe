"""Parameters that are named for what functions of the file make: ``sigmas``, beside ``get_sigmas_karras``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Device, Graph, Value, join
from torchlint.syntax.calls import identifier

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_MAKES = re.compile(r"^(get|make|build|create|compute)_(\w+)$")


def by_start(evaluator: Evaluator) -> dict[str, list[cst.FunctionDef]]:
    """Return the functions of a file that are named for making something, by each start of its name, in words."""
    found: dict[str, list[cst.FunctionDef]] = {}
    for function in evaluator.tree.nodes(cst.FunctionDef):
        made = _MAKES.match(function.name.value)
        words = made[2].split("_") if made is not None else []
        for end in range(1, len(words) + 1):
            found.setdefault("_".join(words[:end]), []).append(function)
    return found


def tensor(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return the tensor that all functions named for a parameter make, if the file does not call what takes it.

    What its callers in other files do with it before is not known: neither its device nor its graph.
    """
    makers = evaluator.makers_by_start.get(param.name.value, [])
    if not makers or param.default is not None or function in makers or evaluator.callers(function):
        return UNKNOWN
    if not _is_gone_through(function, param.name.value, evaluator):
        return UNKNOWN
    made = join([evaluator.returned(maker) for maker in makers])
    if not made.is_tensor:
        return UNKNOWN
    return made._replace(device=Device.UNKNOWN, graph=Graph.UNKNOWN).weakened(Evidence.INFERRED)


def _is_gone_through(function: cst.FunctionDef, name: str, evaluator: Evaluator) -> bool:
    """Return whether a function asks for the length of a parameter and for items of it: of a row, not of one value."""
    calls = (call for call in evaluator.tree.below(function.body, cst.Call) if identifier(call.func) == "len")
    is_counted = any(_is_named(argument.value, name) for call in calls for argument in call.args)
    return is_counted and any(_is_named(i.value, name) for i in evaluator.tree.below(function.body, cst.Subscript))


def _is_named(expression: cst.BaseExpression, name: str) -> bool:
    return isinstance(expression, cst.Name) and expression.value == name
