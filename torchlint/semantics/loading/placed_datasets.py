"""Datasets that are put on a device as a whole: ``dataset.cuda()``, ``dataset.data = dataset.data.to(device)``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tensors.moves import Moves
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import is_same

_COMPUTES = re.compile(r"extract|embed|encod|featur|comput|infer|predict")
_HELD = ("data", "_data")
"""Where a dataset in memory has all of its items, by the names that PyTorch Geometric gives them."""


class PlacedDatasets:
    """Looks for the move."""

    def __init__(self, evaluator: Evaluator, moves: Moves) -> None:
        self._evaluator = evaluator
        self._moves = moves

    def holds(self, dataset: cst.CSTNode) -> bool:
        """Return whether the items of a dataset, or of the one that it is a slice of, have been put on a device."""
        while isinstance(dataset, cst.Subscript):
            dataset = dataset.value
        if isinstance(dataset, cst.Call):
            return self._puts(dataset)
        if not isinstance(dataset, cst.Name):
            return False
        bound = (binding.value for binding in self._evaluator.flow.definitions(dataset))
        return any(isinstance(value, cst.Call) and self._puts(value) for value in bound) or any(
            self._puts(move) for move in self._moved(dataset)
        )

    def _puts(self, call: cst.Call) -> bool:
        move = self._moves.move(call)
        if move is None or move.method not in ("cuda", "to") or move.place is Device.CPU:
            return False
        given = [literal(argument.value) for argument in call.args if argument.keyword is None]
        if any(isinstance(value, str) for value in given[1:]):
            return False  # `data.to(device, "x", "y")` leaves the edges where they are
        is_format = any(isinstance(value, str) for value in given)  # `.to("numpy")`
        return move.place in (Device.ACCELERATOR, Device.EITHER) or not is_format

    def _moved(self, dataset: cst.Name) -> Iterator[cst.Call]:
        """Yield the calls of methods of the variable, and of what holds its items, before it is used."""
        tree, scopes = self._evaluator.tree, self._evaluator.scopes
        own = scopes.deciding(dataset.value, scopes.scope(dataset))
        for name in tree.named(dataset.value):
            if tree.order(name) >= tree.order(dataset):
                return
            if not is_same(name, dataset) or scopes.deciding(name.value, scopes.scope(name)) is not own:
                continue
            owner = tree.parent(name)
            if isinstance(owner, cst.Attribute) and owner.attr.value in _HELD:
                owner = tree.parent(owner)
            call = tree.parent(owner) if isinstance(owner, cst.Attribute) else None
            if isinstance(call, cst.Call) and call.func is owner:
                yield call


def is_extracted(tensor: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a function of another file computed a tensor with a model: it may lie where that put it."""
    bindings = evaluator.flow.definitions(tensor) if isinstance(tensor, cst.Name) else []
    calls = [value for value in (*(binding.value for binding in bindings), tensor) if isinstance(value, cst.Call)]
    return any(
        _COMPUTES.search(identifier(call.func)) is not None
        and evaluator.definitions.definition(call.func) is None
        and not (evaluator.names.qualified(call.func) or "").startswith(("torch.", "builtins.", "numpy."))
        and any(evaluator.value(argument.value).kind is Kind.MODULE for argument in call.args)
        for call in calls
    )


def shows_accelerator(place: Device, evidence: Evidence) -> bool:
    """Return whether a place is an accelerator, or one wherever there is one, by more than its name."""
    if place is Device.ACCELERATOR:
        return evidence is not Evidence.NAMED
    return place is Device.EITHER and evidence is Evidence.PROVEN
