"""Parameters that are named for what functions of the file make: ``sigmas``, beside ``get_sigmas_karras``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Device, Value, join
from torchlint.syntax.calls import is_none

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
    """Return the tensor that all functions named for a parameter make, wherever its callers in other files put it."""
    makers = evaluator.makers_by_start.get(param.name.value, [])
    is_switch = param.default is not None and not is_none(param.default)  # `gst=False`, beside `compute_gst`
    if not makers or is_switch or function in makers or evaluator.callers(function):
        return UNKNOWN
    made = join([evaluator.returned(maker) for maker in makers])
    return made._replace(device=Device.UNKNOWN).weakened(Evidence.INFERRED) if made.is_tensor else UNKNOWN
