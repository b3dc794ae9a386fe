"""Objects whose class only their name tells: a parameter ``actor`` in a file with one class for it, ``AtomActor``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HOLDERS = (Kind.UNKNOWN, Kind.MODULE, Kind.INSTANCE)


def by_ending(evaluator: Evaluator) -> dict[str, cst.ClassDef | None]:
    """Return the classes of a file by each ending of their names, in words; None where several end so."""
    found: dict[str, cst.ClassDef | None] = {}
    for class_def in evaluator.tree.nodes(cst.ClassDef):
        words = _HUMP.sub("_", class_def.name.value.strip("_")).lower().split("_")
        for start in range(len(words)):
            ending = "_".join(words[start:])
            found[ending] = None if ending in found else class_def
    return found


def instance(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return the instance that a parameter is by its name, if the code uses it as its class, or keeps it to do so."""
    class_def = evaluator.classes_by_ending.get(param.name.value.strip("_"))
    if class_def is None or evaluator.tree.within(function, class_def):
        return UNKNOWN
    kind = evaluator.definitions.class_kind(class_def)
    if kind not in _HOLDERS:
        return UNKNOWN
    owner = evaluator.definitions.owner(function)
    variables: list[cst.CSTNode] = [param.name]
    if owner is not None:
        kept = evaluator.definitions.attribute(owner, param.name.value)
        variables += [b.node for b in kept if isinstance(b.value, cst.Name) and b.value.value == param.name.value]
    is_called = "__call__" in evaluator.definitions.methods(class_def) or kind is Kind.MODULE
    for variable in variables:
        used = evaluator.usage.attributes(variable)
        if any(evaluator.definitions.method(class_def, name) is not None for name in used):
            return Value(kind, Evidence.INFERRED, definition=class_def)
        if is_called and evaluator.usage.is_called(variable):
            return Value(kind, Evidence.INFERRED, definition=class_def)
    return UNKNOWN
