"""Moves of batches: whether somebody has decided if they wait, and whether what moves is a batch at all."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.loading.collations import Collations
from torchlint.semantics.tables.loaders import LOADER_KINDS
from torchlint.semantics.tables.torch_api import ITERATION_WRAPPERS
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import Arguments, bind, identifier, literal, method_call

_CUTS = ("split", "chunk", "tensor_split", "unbind")
_HANDS_ON = ITERATION_WRAPPERS | {"builtins.enumerate"}
_HAND_OUT_BATCHES = (Kind.DATALOADER, Kind.DATASET, Kind.BATCH)
_OF_BATCHES = re.compile(r"batch|load|data|set(s|$)|(^|_)(dls?|iters?|its?)(_|$)", re.IGNORECASE)


class BlockingMoves:
    """Answers what is to be known of a move before anybody is told that it waits."""

    def __init__(self, evaluator: Evaluator, collations: Collations) -> None:
        self._evaluator = evaluator
        self._collations = collations

    def is_told(self, move: Move) -> bool:
        """Return whether a move is told if it blocks, takes arguments that may say so, or says so to its copies."""
        arguments = bind(move.call.args)
        # Strings name parts of a batch of a class of its own: `graph.to(device, "x", "y")`.
        positions = [value for value in arguments.extra if not isinstance(literal(value), str)]
        if len(positions) > (1 if move.method == "cuda" else 2) or not arguments.absent("non_blocking"):
            return True
        return move.method == "to" and self._collations.copies_unblocked(move.receiver)

    @cached_property
    def loaders_pin(self) -> bool:
        """Whether all loaders of the file are told to pin what they give, or may be by what decides about it."""
        calls = (call for call in self._evaluator.tree.nodes(cst.Call) if call.args)
        made = [call for call in calls if self._evaluator.names.qualified(call.func) in LOADER_KINDS]
        return bool(made) and all(self._may_pin(bind(call.args)) for call in made)

    def _may_pin(self, given: Arguments) -> bool:
        """Whether a loader that is made with some arguments pins its batches, or may: ``pin_memory=use_cuda``."""
        pinned = given.get("pin_memory")
        if pinned is None:
            return given.open
        return literal(pinned) is not False and self._evaluator.value(pinned).literal is not False

    def takes_items(self, moved: cst.BaseExpression) -> bool:
        """Return whether a loop takes what is moved one by one: chunks of a recording, ``for query in queries``."""
        bindings = self._evaluator.flow.definitions(moved) if isinstance(moved, cst.Name) else []
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ITERATION:
            return False
        taken, path = bindings[0].value, bindings[0].path
        while isinstance(taken, cst.Call) and self._evaluator.names.qualified(taken.func) in _HANDS_ON and taken.args:
            is_counted = identifier(taken.func) == "enumerate"
            taken, path = taken.args[0].value, path[1:] if is_counted else path
        if path or taken is None:
            return False
        cut = method_call(taken, *_CUTS)
        value = self._evaluator.value(cut.value if cut is not None else taken)
        if value.origin is Origin.BATCH or value.kind in _HAND_OUT_BATCHES:
            return False
        return cut is not None or _is_plural(identifier(taken), bindings[0].name)


def _is_plural(several: str, one: str) -> bool:
    """Return whether a name is the plural of another, and means no batches: ``queries`` of ``query`` or ``q``."""
    if not several.endswith("s") or one.endswith("s") or _OF_BATCHES.search(several) or _OF_BATCHES.search(one):
        return False
    return several.startswith(one[:-1] if len(one) > 1 else one)
