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
from torchlint.syntax.calls import bind, element_at, identifier, method_call
from torchlint.syntax.canonical import is_same
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
            if any(self._is_passed_placed(binding, depth) for binding in bindings):
                return True
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

    def _is_passed_placed(self, parameter: Binding, depth: int) -> bool:
        """Whether a parameter is on a device: a module is moved there, ``head.to(x.device)``, or it is passed so."""
        function = self._tree.enclosing(parameter.node, cst.FunctionDef)
        if parameter.kind is not BindingKind.PARAMETER or function is None:
            return False
        asked = (each for each in self._tree.below(function.body, cst.Attribute) if each.attr.value == "device")
        if any(is_same(each.value, parameter.node) and self._gets_module(each) for each in asked):
            return True
        passed = passed_for(parameter, self._evaluator)
        return bool(passed) and all(self._places(each, depth - 1) for each in passed)

    def _gets_module(self, device: cst.Attribute) -> bool:
        """Whether a module is moved to a device."""
        argument = self._tree.parent(device)
        call = self._tree.parent(argument) if isinstance(argument, cst.Arg) else None
        moved = method_call(call, "to") if isinstance(call, cst.Call) else None
        return moved is not None and self._evaluator.value(moved.value).kind is Kind.MODULE

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
        methods = [definitions.method(made, name) for name in _HANDS_OUT] if made is not None else []
        if any(method is not None and self._moves(method.body, depth) for method in methods):
            return True
        return made is not None and any(self._hands_out_placed(method, made, depth) for method in methods)

    def _hands_out_placed(self, method: cst.FunctionDef | None, made: cst.ClassDef, depth: int) -> bool:
        """Whether a method of a wrapper hands out the items of a list that holds what has been moved."""
        if method is None:
            return False
        results = self._evaluator.definitions.results(method)
        attributes = (
            a for a in self._tree.below(method, cst.Attribute) if self._is_own(a) and self._is_list(a, results)
        )
        return any(self._is_filled_placed(attribute.attr.value, made, depth) for attribute in attributes)

    def _is_own(self, attribute: cst.Attribute) -> bool:
        owner = attribute.value
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None

    def _is_list(self, attribute: cst.Attribute, results: list[cst.BaseExpression]) -> bool:
        """Whether a method gives the items of an attribute: it loops over it, or returns ``iter(..)`` or ``..[i]``."""
        parent = self._tree.parent(attribute)
        if isinstance(parent, cst.For):
            given = (each.value for each in self._tree.below(parent.body, cst.Yield))
            return parent.iter is attribute and any(value and is_same(value, parent.target) for value in given)
        if isinstance(parent, cst.CompFor):
            return parent.iter is attribute
        call = self._tree.parent(parent) if isinstance(parent, cst.Arg) else None
        if isinstance(parent, cst.From) or (isinstance(call, cst.Call) and identifier(call.func) == "iter"):
            return True
        return isinstance(parent, cst.Subscript) and parent.value is attribute and parent in results

    def _is_filled_placed(self, name: str, made: cst.ClassDef, depth: int) -> bool:
        """Whether what a class keeps in a list has been moved: by a comprehension, or before it is appended."""
        kept = (binding.value for binding in self._evaluator.definitions.attribute(made, name) if not binding.path)
        if any(isinstance(value, COMPREHENSIONS) and self._moves(value, depth) for value in kept):
            return True
        added = (call for call in self._tree.below(made, cst.Call) if method_call(call, "append") is not None)
        return any(
            isinstance(call.func, cst.Attribute)
            and isinstance(call.func.value, cst.Attribute)
            and call.func.value.attr.value == name
            and self._is_own(call.func.value)
            and self._is_moved(call, depth)
            for call in added
        )

    def _is_moved(self, call: cst.Call, depth: int) -> bool:
        """Whether what a call is given is moved there, or before in a variable."""
        if any(self._moves(argument, depth) for argument in call.args):
            return True
        names = [name for argument in call.args for name in (argument.value, *self._tree.below(argument, cst.Name))]
        values = [b.value for n in names if isinstance(n, cst.Name) for b in self._evaluator.flow.definitions(n)]
        return any(value is not None and self._moves(value, depth) for value in values)

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
