"""Objects whose class only their name tells: a parameter ``actor`` in a file with one class for it, ``AtomActor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.vocabulary import in_words
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

# What is named for its part in a program, whatever its class.
_ROLES = frozenset(
    "model net network optimizer optim criterion loader dataloader loss dataset module batch data".split()
)
_OF_MODULES = frozenset(
    "eval train training parameters named_parameters state_dict load_state_dict to cuda cpu modules children apply "
    "zero_grad requires_grad_ half float double named_modules named_children buffers forward".split()
)
_HOLDERS = (Kind.UNKNOWN, Kind.MODULE, Kind.INSTANCE)


def by_ending(evaluator: Evaluator) -> dict[str, cst.ClassDef | None]:
    """Return the classes of a file by each ending of their names, in words; None where several end so."""
    found: dict[str, cst.ClassDef | None] = {}
    for class_def in evaluator.tree.nodes(cst.ClassDef):
        words = in_words(class_def.name.value.strip("_")).split("_")
        for start in range(len(words)):
            ending = "_".join(words[start:])
            found[ending] = None if ending in found else class_def
    return found


def instance(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> Value:
    """Return the instance that a parameter is by its name, if objects of the class have all that it is asked for.

    Also in the attribute that keeps it.
    """
    name = param.name.value.strip("_")
    class_def = evaluator.classes_by_ending.get(name)
    if class_def is None or name in _ROLES or evaluator.tree.within(function, class_def):
        return UNKNOWN
    kind = evaluator.definitions.class_kind(class_def)
    if _is_made_by_callers(function, param, evaluator):
        return UNKNOWN
    if kind not in _HOLDERS or any(_ends_in(each, name) for each in evaluator.vocabulary.imported):
        return UNKNOWN
    owner = evaluator.definitions.owner(function)
    variables: list[cst.CSTNode] = [param.name]
    if owner is not None:
        kept = evaluator.definitions.attribute(owner, param.name.value)
        variables += [b.node for b in kept if isinstance(b.value, cst.Name) and b.value.value == param.name.value]
    used = {attribute for variable in variables for attribute in evaluator.usage.attributes(variable)}
    is_called = any(map(evaluator.usage.is_called, variables))
    is_callable = "__call__" in evaluator.definitions.methods(class_def) or kind is Kind.MODULE
    fits = all(_has(class_def, each, kind, evaluator) for each in used) and (is_callable or not is_called)
    return Value(kind, Evidence.INFERRED, definition=class_def) if fits and (used or is_called) else UNKNOWN


def _is_made_by_callers(function: cst.FunctionDef, param: cst.Param, evaluator: Evaluator) -> bool:
    """Return whether a caller passes what the file shows how it is made: ``meter = metrics.build()``."""
    for call in evaluator.callers(function):
        given = argument_for(function, param, call, evaluator.definitions)
        bindings = evaluator.flow.definitions(given) if isinstance(given, cst.Name) else []
        if isinstance(given, cst.Call) or any(isinstance(b.value, cst.Call) for b in bindings):
            return True
    return False


def _ends_in(name: str, ending: str) -> bool:
    """Return whether the name of something imported, in words, ends so."""
    return f"_{in_words(name)}".endswith(f"_{ending}")


def _has(class_def: cst.ClassDef, name: str, kind: Kind, evaluator: Evaluator) -> bool:
    """Return whether objects of a class have an attribute or method."""
    definitions = evaluator.definitions
    method = definitions.method(class_def, name)
    if method is not None or definitions.attribute(class_def, name):
        return method is None or not _is_left_open(method)
    return kind is Kind.MODULE and name in _OF_MODULES


def _is_left_open(method: cst.FunctionDef) -> bool:
    """Return whether a method does nothing, so that a subclass in another file must say what it does."""
    lines = method.body.body
    parts = [part for line in lines for part in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))]
    return all(isinstance(part, (cst.Pass, cst.Raise, cst.Expr)) for part in parts) and not any(
        isinstance(part, cst.Expr) and isinstance(part.value, cst.Call) for part in parts
    )
