"""Functions that bring to a device the batch that they are given: ``to_device(batch)``, ``move_to_cuda(sample)``.

They are named for it, or go through all lists and dictionaries that they are given and move each tensor.
"""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate import hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tensors.container_walkers import applies_to_each, walks_containers
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal

# What is moved once: everything that is no data.
_KEPT = re.compile(
    r"model|module|net(work)?s?(_|$)|layer|param|weight|state|optim|buffer|ckpt|checkpoint|cache|loss|encoder|decoder|pipe|"
    r"offload|swap|evict|store|saved",
    re.IGNORECASE,
)
_BATCH = re.compile(r"^(mini_?|data_?)?batch(es)?(_data)?$|^samples?$|^data$|^examples?$")
_DATA = frozenset((Kind.UNKNOWN, Kind.TENSOR, Kind.BATCH, Kind.SEQUENCE, Kind.MAPPING))
_MAX_DEPTH = 4


def moves_batches(move: Move, evaluator: Evaluator) -> bool:
    """Return whether a move is the work of such a function, which programs call for each batch."""
    function = _mover(move, evaluator)
    if function is None or not _is_given(move.receiver, function, evaluator, 0) or _knows_better(function, evaluator):
        return False
    if evaluator.value(move.receiver).kind not in _DATA:
        return False
    passed = [argument.value for call in evaluator.callers(function) for argument in call.args[:2]]
    return not any(evaluator.value(each).kind in (Kind.MODULE, Kind.OPTIMIZER) for each in passed)


def moves_items(move: Move, evaluator: Evaluator) -> bool:
    """Return whether a model moves parts of the items it is given to itself: ``[x["y"].to(self.device) for x in xs]``.

    What a loader has not joined to one tensor comes to the model as it is, on the host.
    """
    place = move.names[0] if len(move.names) == 1 else None
    part = move.receiver if isinstance(move.receiver, cst.Subscript) and len(move.receiver.slice) == 1 else None
    key = part.slice[0].slice if part is not None else None
    if part is None or not isinstance(key, cst.Index) or not isinstance(literal(key.value), str):
        return False
    if not evaluator.value(part).is_tensor:
        return False  # boxes, masks and the like are objects with a `.to` of their own
    method = evaluator.definitions.enclosing_function(move.call)
    owner = evaluator.definitions.owner(method) if method is not None else None
    if owner is None or evaluator.definitions.class_kind(owner) is not Kind.MODULE:
        return False
    if not isinstance(place, cst.Attribute) or _is_of_other(place, evaluator):
        return False
    items = _only(part.value, BindingKind.ITERATION, evaluator)
    return items is not None and _only(items, BindingKind.PARAMETER, evaluator) is not None


def _only(name: cst.CSTNode, kind: BindingKind, evaluator: Evaluator) -> cst.CSTNode | None:
    """What a name is bound to, a parameter to itself, where it is bound once and in this way."""
    bindings = evaluator.flow.definitions(name) if isinstance(name, cst.Name) else []
    if len(bindings) != 1 or bindings[0].kind is not kind:
        return None
    return name if kind is BindingKind.PARAMETER else bindings[0].value


def _mover(move: Move, evaluator: Evaluator) -> cst.FunctionDef | None:
    """The outermost function around a call that moves the batch it is given, by its name or by what it does.

    It hands the batch back.
    """
    found = None
    function = evaluator.definitions.enclosing_function(move.call)
    while function is not None:
        named = hints.names_move(function.name.value)
        given = any(_BATCH.match(parameter.name.value) for parameter in function.params.params)
        if evaluator.definitions.results(function) and ((named and given) or _walks(function, move, evaluator)):
            found = function
        function = evaluator.definitions.enclosing_function(function)
    return found


def _walks(function: cst.FunctionDef, move: Move, evaluator: Evaluator) -> bool:
    """Whether a function moves each tensor in the lists and dictionaries that it is given, and is named for no other.

    It calls itself for what they hold, or has a function that does so apply the move.
    """
    if any(map(_KEPT.search, (function.name.value, *(each.name.value for each in parameters(function))))):
        return False
    if any(_is_of_other(place, evaluator) for place in move.names):
        return False
    applied = evaluator.tree.enclosing(move.call, cst.FunctionDef, cst.Lambda)
    if applied is function:
        return walks_containers(function, evaluator)
    return isinstance(applied, (cst.FunctionDef, cst.Lambda)) and applies_to_each(applied, function, evaluator)


def _is_of_other(place: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a place is where another tensor is: ``x.to(y.device)``, not ``x.to(self.device)``."""
    owner = place
    while isinstance(owner, (cst.Attribute, cst.Subscript)):
        owner = owner.value
    is_own = isinstance(owner, cst.Name) and evaluator.definitions.receiver(owner) is not None
    return isinstance(place, cst.Attribute) and not is_own


def _knows_better(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a function also moves without waiting: the other move is for what cannot be moved so."""
    arguments = evaluator.tree.below(function, cst.Arg)
    return any(each.keyword is not None and each.keyword.value == "non_blocking" for each in arguments)


def _is_given(expression: cst.BaseExpression, function: cst.FunctionDef, evaluator: Evaluator, depth: int) -> bool:
    """Whether an expression is a parameter of a function, or of one inside it, or a part of one."""
    while isinstance(expression, cst.Subscript):
        expression = expression.value
    if isinstance(expression, cst.Call) and identifier(expression.func) in ("items", "values", "enumerate", "zip"):
        called = expression.func
        parts = (
            [called.value] if isinstance(called, cst.Attribute) else [argument.value for argument in expression.args]
        )
        return bool(parts) and all(_is_given(part, function, evaluator, depth) for part in parts)
    if not isinstance(expression, cst.Name) or depth == _MAX_DEPTH:
        return False
    if _KEPT.search(expression.value) or hints.named(expression.value).kind in (Kind.MODULE, Kind.DEVICE):
        return False
    bindings = evaluator.flow.definitions(expression)
    inside = bool(bindings) and all(evaluator.tree.within(binding.node, function) for binding in bindings)
    if not inside or evaluator.definitions.receiver(expression) is not None:
        return False
    sources = [binding.value for binding in bindings if binding.kind is not BindingKind.PARAMETER]
    return all(source is not None and _is_given(source, function, evaluator, depth + 1) for source in sources)
