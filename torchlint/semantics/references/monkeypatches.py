"""Whether a file puts something else in place of what torch or NumPy define, where no name of it shows that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from torchlint.semantics.tables.container_methods import CHANGES_KEYS
from torchlint.syntax.calls import identifier, literal

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PUTTING = frozenset(("setattr", "__setattr__", "delattr", "patch", "object", "multiple"))
"""Functions that replace an attribute of their first argument, or the one that a string names."""

_MODES = ("TorchFunctionMode", "TorchDispatchMode")
_SETTINGS = ("torch.backends", "torch._dynamo.config", "torch._inductor.config")
_NAMESPACES = frozenset(("builtins.globals", "builtins.locals", "builtins.vars"))
_WRITING = frozenset((*CHANGES_KEYS, "__setitem__", "__delitem__"))


def alters_libraries(model: Model) -> bool:
    """Return whether functions, methods or dtypes of torch or NumPy may be other ones where this file runs."""
    if model.names_any_of(*_MODES) or model.speaks_of(*_MODES):
        return True
    assigned = (name for name in model.names.rebound if _is_torch(name.rpartition(".")[0]))
    if any(assigned) or any(_replaces(call, model) for call in model.nodes(cst.Call)):
        return True
    return any(_is_namespaced(entry, model) for entry in _written(model))


def _is_torch(name: str | None) -> bool:
    """Whether a name is that of torch or of something in it, other than its settings."""
    return name is not None and f"{name}.".startswith("torch.") and not name.startswith(_SETTINGS)


def _replaces(call: cst.Call, model: Model) -> bool:
    """Whether a call puts something into torch or NumPy, or runs code among the names of the file."""
    last = identifier(call.func)
    if last == "exec" and isinstance(call.func, cst.Name):
        return len(call.args) == 1
    if last in _WRITING and isinstance(call.func, cst.Attribute):
        return _is_namespace(call.func.value, model)
    if last not in _PUTTING or not call.args:
        return False
    first = call.args[0].value
    named = literal(first)
    owner = named if isinstance(named, str) else model.qualified_name(first)
    return _is_torch(owner) or f"{owner}.".startswith("numpy.")


def _is_namespace(expression: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression is the dict of the names of this file, or of those of torch."""
    return _is_inside_of_torch(expression, model) or (_is_namespace_call(expression, model) and not expression.args)


def _is_inside_of_torch(expression: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression is ``torch.__dict__`` or ``vars(torch)``."""
    if isinstance(expression, cst.Attribute):
        return expression.attr.value == "__dict__" and _is_torch(model.qualified_name(expression.value))
    arguments = expression.args if _is_namespace_call(expression, model) else ()
    return any(_is_torch(model.qualified_name(argument.value)) for argument in arguments)


def _is_namespace_call(expression: cst.BaseExpression, model: Model) -> TypeGuard[cst.Call]:
    return isinstance(expression, cst.Call) and model.qualified_name(expression.func) in _NAMESPACES


def _is_namespaced(entry: cst.Subscript, model: Model) -> bool:
    """Whether an entry is that of torch among the modules, one in torch, or an import of this file."""
    index = entry.slice[0].slice
    key = literal(index.value) if isinstance(index, cst.Index) else None
    if model.qualified_name(entry.value) == "sys.modules":
        return isinstance(key, str) and _is_torch(key)
    is_spoken = not isinstance(key, str) or key in _imported(model)
    return _is_inside_of_torch(entry.value, model) or (is_spoken and _is_namespace(entry.value, model))


def _imported(model: Model) -> Iterator[str]:
    """Yield the names that imports bind."""
    for alias in model.nodes(cst.ImportAlias):
        yield alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _written(model: Model) -> Iterator[cst.Subscript]:
    """Yield the entries that are assigned or deleted."""
    assigned = [target.target for target in model.nodes(cst.AssignTarget)]
    deleted = [deletion.target for deletion in model.nodes(cst.Del)]
    for target in (*assigned, *deleted):
        if isinstance(target, cst.Subscript):
            yield target
