"""Batches that are on a device before a loop takes them: put there by the dataset, its collation, or a wrapper."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS, Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.loading.datasets import Datasets
from torchlint.semantics.tables.torch_api import DATASET_WRAPPERS
from torchlint.semantics.tensors.moves import Moves
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import bind, element_at, identifier
from torchlint.syntax.remembered import remembered

_DEPTH = 6
"""Through how many variables, calls and wrappers a batch is followed back."""

TENSOR_DATASETS = DATASET_WRAPPERS | {"torch.utils.data.TensorDataset"}
# What hands on what it goes through.
_HANDS_ON = ("builtins.", "itertools.", "tqdm.")
_HANDS_OUT = ("__iter__", "__next__", "__call__", "__getitem__")


class PlacedBatches:
    """Follows a batch back to what hands it out."""

    def __init__(self, evaluator: Evaluator, moves: Moves, datasets: Datasets) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._moves_made = moves
        self._datasets = datasets

    @remembered
    def hold(self, batch: cst.BaseExpression) -> bool:
        """Return whether what hands out a batch, or what it is a part of, has put it on a device."""
        return any(self._places(source, _DEPTH) for source in self._sources(batch, _DEPTH))

    @remembered
    def are_given_by(self, source: cst.BaseExpression) -> bool:
        """Return whether what a loader is given, a dataset or a collation, puts its batches on a device."""
        return self._is_placing_source(source, _DEPTH)

    def _sources(self, batch: cst.BaseExpression, depth: int) -> Iterator[cst.BaseExpression]:
        """What loops take a batch from, also one that a function has taken apart: ``x, y = split(batch)``."""
        names = [batch] if isinstance(batch, cst.Name) else self._tree.below(batch, cst.Name)
        for binding in (binding for name in names for binding in self._evaluator.flow.definitions(name)):
            if binding.value is None or depth <= 0 or self._tree.within(batch, binding.value):
                continue
            if binding.kind is BindingKind.ITERATION or _is_next(binding.value):
                yield binding.value
            elif binding.kind is BindingKind.ASSIGNMENT:
                yield from self._sources(binding.value, depth - 1)

    def _places(self, source: cst.CSTNode | None, depth: int) -> bool:
        """Whether what an expression hands out is on a device."""
        if source is None or depth <= 0:
            return False
        if isinstance(source, cst.Name):
            bindings = self._evaluator.flow.definitions(source)
            return any(self._binds_placed(binding, depth - 1) for binding in bindings if binding.value is not source)
        if isinstance(source, cst.Attribute):
            return any(self._places(value, depth - 1) for value in self._held(source))
        if isinstance(source, (cst.List, cst.Tuple)):
            return any(self._places(element.value, depth - 1) for element in source.elements)
        if isinstance(source, COMPREHENSIONS):
            return self._moves(source, depth) or self._places(source.for_in.iter, depth - 1)
        return isinstance(source, cst.Call) and self._call_places(source, depth)

    def _binds_placed(self, binding: Binding, depth: int) -> bool:
        """Whether a variable is bound to such a thing, also to one of several that a function of the file returns."""
        made = binding.value
        function = self._evaluator.definitions.definition(made.func) if isinstance(made, cst.Call) else None
        if isinstance(function, cst.FunctionDef) and binding.kind is BindingKind.ASSIGNMENT:
            results = self._evaluator.definitions.results(function)
            if any(self._places(element_at(result, binding.path), depth - 1) for result in results):
                return True
        return self._places(binding.part or made, depth)

    def _call_places(self, call: cst.Call, depth: int) -> bool:
        if self._puts(call):
            return True
        name = self._evaluator.names.qualified(call.func) or ""
        given = [argument.value for argument in call.args]
        made = self._evaluator.definitions.definition(call.func)
        if name in TENSOR_DATASETS:
            return any(self._places(each, depth - 1) for each in given)
        if self._evaluator.value(call).kind is Kind.DATALOADER:
            is_placed = any(self._is_placing_source(each, depth) for each in given)
            results = self._evaluator.definitions.results(made) if isinstance(made, cst.FunctionDef) else []
            return is_placed or any(self._places(result, depth - 1) for result in results)
        if made is None and not name.startswith(_HANDS_ON):
            return False
        if self._gives_placed(made, depth) or any(self._is_mover(each, depth) for each in given):
            return True
        return any(self._places(each, depth - 1) for each in given)

    def _is_placing_source(self, given: cst.BaseExpression, depth: int) -> bool:
        """Whether what a loader is given is a dataset or a collation that puts items on a device."""
        if self._datasets.yields_device_tensors(given) or self._is_mover(given, depth):
            return True
        bindings = self._evaluator.flow.definitions(given) if isinstance(given, cst.Name) else ()
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else given
        named = self._evaluator.names.qualified(made.func) if isinstance(made, cst.Call) else None
        if named in TENSOR_DATASETS and self._places(made, depth - 1):
            return True
        passed = passed_for(bindings[0], self._evaluator) if depth > 0 and len(bindings) == 1 else []
        return bool(passed) and all(self._is_placing_source(each, depth - 1) for each in passed)

    def _gives_placed(self, made: cst.FunctionDef | cst.ClassDef | None, depth: int) -> bool:
        """Whether a generator moves what it yields, or a wrapper of a loader what it hands out."""
        definitions = self._evaluator.definitions
        if isinstance(made, cst.FunctionDef):
            handed = [each.value for each in definitions.yielded(made)] or definitions.results(made)
            return any(value is not None and self._moves(value, depth) for value in handed)
        methods = (definitions.method(made, name) for name in _HANDS_OUT) if made is not None else ()
        return any(method is not None and self._moves(method.body, depth) for method in methods)

    def _is_mover(self, given: cst.BaseExpression, depth: int) -> bool:
        """Whether what is handed on is a function that moves: to ``map``, to a wrapper, as a collation."""
        if isinstance(given, cst.Lambda):
            return self._moves(given.body, depth)
        if isinstance(given, cst.Call) and given.args:
            is_partial = self._evaluator.names.qualified(given.func) == "functools.partial"
            return is_partial and self._is_mover(given.args[0].value, depth)
        definition = self._evaluator.definitions.definition(given)
        return isinstance(definition, cst.FunctionDef) and self._moves(definition.body, depth)

    def _moves(self, code: cst.CSTNode, depth: int) -> bool:
        """Whether code puts something on a device, itself or by functions of the file."""
        calls = [code] if isinstance(code, cst.Call) else []
        for call in (*calls, *self._tree.below(code, cst.Call)):
            if self._puts(call):
                return True
            made = self._evaluator.definitions.definition(call.func) if depth > 0 else None
            if isinstance(made, cst.FunctionDef) and self._moves(made.body, depth - 2):
                return True
        return False

    def _puts(self, call: cst.Call) -> bool:
        """Whether a call moves something to a device, or makes a tensor there."""
        move = self._moves_made.move(call)
        if move is not None:
            return move.method != "type_as" and move.place is not Device.CPU
        device = bind(call.args).get("device")
        makes = (self._evaluator.names.qualified(call.func) or "").startswith("torch.")
        return makes and device is not None and self._evaluator.value(device).device is not Device.CPU

    def _held(self, attribute: cst.Attribute) -> Iterator[cst.BaseExpression | None]:
        held = attribute.value
        owner = self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
        if owner is not None:
            yield from (b.value for b in self._evaluator.definitions.attribute(owner, attribute.attr.value))


def _is_next(value: cst.BaseExpression) -> bool:
    """Return whether a value is taken out of an iterator by hand."""
    return isinstance(value, cst.Call) and identifier(value.func) in ("next", "__next__")
