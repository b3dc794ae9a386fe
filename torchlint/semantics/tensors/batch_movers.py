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
from torchlint.semantics.evaluate.moving_calls import names_move
from torchlint.semantics.tensors.container_walkers import applies_to_each, walks_containers
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier

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


def _mover(move: Move, evaluator: Evaluator) -> cst.FunctionDef | None:
    """The outermost function around a call that moves the batch it is given, by its name or by what it does.

    It hands the batch back.
    """
    found = None
    function = evaluator.definitions.enclosing_function(move.call)
    while function is not None:
        named = names_move(function.name.value)
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
    owner = place.value if isinstance(place, cst.Attribute) else None
    return isinstance(owner, cst.Name) and evaluator.definitions.receiver(owner) is None


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
