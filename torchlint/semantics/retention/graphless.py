"""Values without a graph: computed where gradients are off, of gradients, or by frozen models of data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_gradients import disabled_for
from torchlint.semantics.retention.kept_fates import PICKS
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import bind, element_at, identifier, literal
from torchlint.syntax.canonical import is_same

_MOST_GIVEN = 50
"""How many of the values that optimizers are given are followed."""

_NO_TENSORS = frozenset((Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.NDARRAY, Kind.DTYPE, Kind.DEVICE))
_PARTS = frozenset(("T", "mT", "H", "real", "imag", "values", "indices"))
_BUILTINS = frozenset(f"builtins.{name}" for name in ("sum", "max", "min", "abs", "list", "tuple", "zip", "enumerate"))
_OPERATIONS = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)


class Graphless:
    """Follows values to what they are computed of."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._backward = backward
        self._frozen = backward.frozen
        self._known: dict[tuple[int, int], tuple[cst.CSTNode, cst.Call | None, bool | None]] = {}

    def holds(self, value: cst.BaseExpression) -> bool:
        """Return whether a value is a tensor without a graph, by all that the file shows of what it is computed of."""
        return self._is_without(value) is True

    def _is_without(
        self, value: cst.CSTNode | None, call: cst.Call | None = None, path: tuple[int, ...] = ()
    ) -> bool | None:
        """Whether a value has no graph; None for what is no tensor, as a number is.

        In a function a value is that of one ``call`` of it. Of several results it is the one on a ``path``.
        """
        if value is None:
            return False
        if path:
            return self._is_result_without(value, path) if isinstance(value, cst.Call) else False
        if call is not None and self._function(call) is not self._evaluator.definitions.enclosing_function(value):
            call = None  # it says nothing of the function around that
        key = id(value), id(call) if call is not None else 0
        if key not in self._known:
            self._known[key] = value, call, False  # what is computed of itself may have one
            self._known[key] = value, call, self._tell(value, call)
        return self._known[key][2]

    def _tell(self, value: cst.CSTNode, call: cst.Call | None) -> bool | None:
        if literal(value) is not None:
            return None
        if self._computes(value) and (self._evaluator.gradients.disabled(value) or self._is_told_off(value, call)):
            return True
        known = self._evaluator.value(value)
        if known.kind in _NO_TENSORS:
            return None
        if known.kind is Kind.BATCH or (known.is_tensor and known.graph is Graph.DETACHED):
            return True
        if isinstance(value, cst.Name):
            bindings = self._bindings(value, call)
            if not bindings or (self._has_passes(value, call) and self._are_differentiated(bindings)):
                return False
            return self._all(self._is_bound_without(each, call) for each in bindings)
        if isinstance(value, cst.Call):
            return self._is_called_without(value, call)
        function = self._evaluator.definitions.enclosing_function(value) if call is not None else None
        if isinstance(value, cst.IfExp) and function is not None and call is not None:
            chosen = self._evaluator.told.chosen(value, function, call)
            if chosen is not value:
                return self._is_without(chosen, call)
        parts = _parts(value)
        return self._all(self._is_without(part, call) for part in parts) if parts else False

    def _has_passes(self, value: cst.CSTNode, call: cst.Call | None) -> bool:
        """Whether a backward pass may start in the function around a value, for a call of it: not if it is told so."""
        function = self._evaluator.definitions.enclosing_function(value) if call is not None else None
        if function is None or call is None:
            return True
        return not self._backward.leaves_passes_out(call, function)

    def _are_differentiated(self, bindings: list[Binding]) -> bool:
        return not self._differentiated.isdisjoint(id(each.node) for each in bindings)

    def _bindings(self, name: cst.Name, call: cst.Call | None) -> list[Binding]:
        """What may bind a variable where it is read, for a call of the function around it."""
        function = self._evaluator.definitions.enclosing_function(name) if call is not None else None
        if function is None or call is None:
            return list(self._evaluator.flow.definitions(name))
        return self._evaluator.told.bindings(name, function, call)

    def _is_told_off(self, value: cst.CSTNode, call: cst.Call | None) -> bool:
        """Whether a call tells the function around a value to record nothing there."""
        function = self._evaluator.definitions.enclosing_function(value) if call is not None else None
        return function is not None and call is not None and disabled_for(value, function, call, self._evaluator)

    @cached_property
    def _differentiated(self) -> frozenset[int]:
        """The bindings from which backward passes of the file start: those have graphs, whatever they are made of."""
        losses = self._backward.losses(self._evaluator.tree.module)
        names = (loss for loss in losses if isinstance(loss, cst.Name))
        return frozenset(id(each.node) for name in names for each in self._evaluator.flow.definitions(name))

    def _is_bound_without(self, binding: Binding, call: cst.Call | None) -> bool | None:
        if binding.kind is BindingKind.ASSIGNMENT:
            part = binding.part
            return self._is_without(part or binding.value, call, binding.path if part is None else ())
        return self._is_without(binding.value, call) if binding.kind is BindingKind.ITERATION else False

    def _is_called_without(self, call: cst.Call, outer: cst.Call | None) -> bool | None:
        name = self._evaluator.names.qualified(call.func) or ""
        if name == "torch.autograd.grad":
            given_to = bind(call.args, ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"))
            created = given_to.get("create_graph")
            return (created is None and not given_to.open) or (created is not None and self._is_off(created, outer))
        given = [argument.value for argument in call.args]
        if isinstance(call.func, (cst.Name, cst.Attribute)) and self._is_frozen(call.func):
            return self._all(self._is_without(each, outer) for each in given)
        if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
            return False
        if any(a.keyword is not None and a.keyword.value == "requires_grad" for a in call.args):
            return False
        if name.startswith("torch.") or name in _BUILTINS:
            return self._all(self._is_without(each, outer) for each in given)
        function = self._evaluator.definitions.definition(call.func) or self._method(call)
        if isinstance(function, cst.FunctionDef):
            return self._is_returned_without(function, call, ())
        if function is not None or not isinstance(call.func, cst.Attribute) or call.func.attr.value in PICKS:
            return False
        return self._all(self._is_without(each, outer) for each in (call.func.value, *given))

    def _is_result_without(self, call: cst.Call, path: tuple[int, ...]) -> bool:
        """Whether one of several results of a function of the file has no graph."""
        function = self._function(call)
        return function is not None and self._is_returned_without(function, call, path)

    def _is_returned_without(self, function: cst.FunctionDef, call: cst.Call, path: tuple[int, ...]) -> bool:
        results = self._evaluator.definitions.results(function)
        left = [each for each in results if not self._evaluator.told.leaves_out(each, function, call)]
        parts = [element_at(self._evaluator.told.chosen(each, function, call), path) for each in left]
        return bool(parts) and all(self._is_without(part, call) is True for part in parts)

    def _is_off(self, created: cst.BaseExpression, call: cst.Call | None) -> bool:
        """Whether ``create_graph`` is False, as a call tells the function around it perhaps."""
        function = self._evaluator.definitions.enclosing_function(created) if call is not None else None
        if function is None or call is None:
            return literal(created) is False
        return self._evaluator.told.truth(created, function, call) is False

    def _is_frozen(self, model: cst.Name | cst.Attribute) -> bool:
        """Whether all parameters of a model are frozen for good: nothing replaces a part of it, or optimizes one."""
        if not self._frozen.holds(model) or self._frozen.thaws:
            return False
        tree = self._evaluator.tree
        targets = (each.target for each in tree.nodes(cst.AssignTarget))
        if any(isinstance(each, cst.Attribute) and is_same(each.value, model) for each in targets):
            return False
        return not any(is_same(part, model) for part in self._optimized)

    @cached_property
    def _optimized(self) -> list[cst.CSTNode]:
        """All that stands in what the optimizers of the file are given, also by variables."""
        tree = self._evaluator.tree
        optimizers = (call for call in tree.nodes(cst.Call) if self._evaluator.value(call).kind is Kind.OPTIMIZER)
        given = [argument.value for call in optimizers for argument in call.args]
        for value in given[:_MOST_GIVEN]:
            names = tree.below(value, cst.Name)
            held = (each for name in names for each in self._evaluator.held_by(name) if each is not None)
            given += (each for each in held if all(each is not other for other in given))
        return [part for value in given for part in tree.descendants(value)]

    def _function(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of the file that a call runs."""
        function = self._evaluator.definitions.definition(call.func) or self._method(call)
        return function if isinstance(function, cst.FunctionDef) else None

    def _method(self, call: cst.Call) -> cst.FunctionDef | None:
        """The method of a class of the file that a call runs, where it is known of what object: ``forward`` perhaps."""
        definitions = self._evaluator.definitions
        called = self._evaluator.value(call.func)
        if called.kind is Kind.MODULE and isinstance(called.definition, cst.ClassDef):
            return definitions.method(called.definition, "forward")
        made = self._evaluator.value(call.func.value).definition if isinstance(call.func, cst.Attribute) else None
        return definitions.method(made, identifier(call.func)) if isinstance(made, cst.ClassDef) else None

    def _computes(self, value: cst.CSTNode) -> bool:
        """Whether an expression makes a tensor of its own, which has no graph where gradients are off."""
        if isinstance(value, cst.Call):
            return identifier(value.func) not in PICKS and self._evaluator.value(value.func).kind is not Kind.CLASS
        return isinstance(value, _OPERATIONS)

    @staticmethod
    def _all(parts: Iterable[bool | None]) -> bool | None:
        """Whether a value has no graph that is computed of some parts: none of them has one."""
        found = None
        for part in parts:
            if part is False:
                return False
            found = part or found
        return found


def _parts(value: cst.CSTNode) -> list[cst.BaseExpression]:
    """Return what an expression computes its value of, or picks it out of; nothing if that is not known."""
    if isinstance(value, cst.BinaryOperation):
        return [value.left, value.right]
    if isinstance(value, cst.UnaryOperation):
        return [value.expression]
    if isinstance(value, cst.IfExp):
        return [value.body, value.orelse]
    if isinstance(value, cst.Subscript):
        return [value.value]
    if isinstance(value, cst.Attribute):
        return [value.value] if value.attr.value in _PARTS else []
    if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return [value.elt]
    return [element.value for element in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else []
