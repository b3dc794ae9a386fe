"""Functions that average over processes, known by their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Graph, Kind, Value, of

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

# What gives the tensors that it is given, averaged over the processes: `reduce_tensor(loss)`, `reduce_dict(losses)`.
_REDUCES = re.compile(r"^_?(all_?)?reduced?_(\w+_)?(tensors?|dict|loss(es)?|loss_dict|value|values|mean|metrics)$")


def averaged(call: cst.Call, name: str, evaluator: Evaluator) -> Value:
    """Return what a function gives that is named for averaging over the processes: ``reduce_dict(losses)``."""
    is_one = _REDUCES.match(name) is not None and bool(call.args) and not call.args[0].star
    return _reduced(evaluator.value(call.args[0].value)) if is_one else UNKNOWN


def communicates(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function of the file asks the other processes itself: ``dist.all_reduce(value)``."""
    calls = evaluator.tree.below(function.body, cst.Call)
    return any((evaluator.names.qualified(call.func) or "").startswith("torch.distributed.") for call in calls)


def _reduced(given: Value) -> Value:
    """Return a tensor, or a mapping of them, after it was averaged over the processes: maybe without its graph."""
    if given.kind is Kind.MAPPING and given.element is not None:
        reduced = _reduced(given.element)
        return of(Kind.MAPPING, reduced) if reduced.known else UNKNOWN
    return given._replace(graph=Graph.UNKNOWN).weakened(Evidence.INFERRED) if given.is_tensor else UNKNOWN
