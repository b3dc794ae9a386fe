"""Values without a graph: computed where gradients are off, of gradients, or by frozen models of data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.kept_fates import PICKS
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import bind, identifier, literal
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
        self._told: dict[int, tuple[cst.CSTNode, bool | None]] = {}

    def holds(self, value: cst.BaseExpression) -> bool:
        """Return whether a value is a tensor without a graph, by all that the file shows of what it is computed of."""
        return self._is_without(value) is True

    def _is_without(self, value: cst.CSTNode | None) -> bool | None:
        """Whether a value has no graph; None for what is no tensor, as a number is."""
        if value is None:
            return False
        known = self._told.get(id(value))
        if known is None:
            self._told[id(value)] = value, False  # what is computed of itself may have one
            known = self._told[id(value)] = value, self._tell(value)
        return known[1]

    def _tell(self, value: cst.CSTNode) -> bool | None:
        if literal(value) is not None:
            return None
        if self._computes(value) and self._evaluator.gradients.disabled(value):
            return True
        known = self._evaluator.value(value)
        if known.kind in _NO_TENSORS:
            return None
        if known.kind is Kind.BATCH or (known.is_tensor and known.graph is Graph.DETACHED):
            return True
        if isinstance(value, cst.Name):
            bindings = self._evaluator.flow.definitions(value)
            if not bindings or not self._differentiated.isdisjoint(id(each.node) for each in bindings):
                return False
            return self._all(self._is_bound_without(each) for each in bindings)
        if isinstance(value, cst.Call):
            return self._is_called_without(value)
        parts = _parts(value)
        return self._all(self._is_without(part) for part in parts) if parts else False

    @cached_property
    def _differentiated(self) -> frozenset[int]:
        """The bindings from which backward passes of the file start: those have graphs, whatever they are made of."""
        losses = self._backward.losses(self._evaluator.tree.module)
        names = (loss for loss in losses if isinstance(loss, cst.Name))
        return frozenset(id(each.node) for name in names for each in self._evaluator.flow.definitions(name))

    def _is_bound_without(self, binding: Binding) -> bool | None:
        if binding.kind is BindingKind.ASSIGNMENT:
            return self._is_without(binding.part or binding.value)
        return self._is_without(binding.value) if binding.kind is BindingKind.ITERATION else False

    def _is_called_without(self, call: cst.Call) -> bool | None:
        name = self._evaluator.names.qualified(call.func) or ""
        if name == "torch.autograd.grad":
            given_to = bind(call.args, ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"))
            created = given_to.get("create_graph")
            return (created is None and not given_to.open) or (created is not None and literal(created) is False)
        given = [argument.value for argument in call.args]
        if isinstance(call.func, (cst.Name, cst.Attribute)) and self._is_frozen(call.func):
            return self._all(self._is_without(each) for each in given)
        if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
            return False
        if any(a.keyword is not None and a.keyword.value == "requires_grad" for a in call.args):
            return False
        if name.startswith("torch.") or name in _BUILTINS:
            return self._all(self._is_without(each) for each in given)
        function = self._evaluator.definitions.definition(call.func) or self._method(call)
        if isinstance(function, cst.FunctionDef):
            results = self._evaluator.definitions.results(function)
            return bool(results) and all(self._is_without(each) is True for each in results)
        if function is not None or not isinstance(call.func, cst.Attribute) or call.func.attr.value in PICKS:
            return False
        return self._all(self._is_without(each) for each in (call.func.value, *given))

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

    def _method(self, call: cst.Call) -> cst.FunctionDef | None:
        """The method of a class of the file that a call runs, where it is known of what object."""
        made = self._evaluator.value(call.func.value).definition if isinstance(call.func, cst.Attribute) else None
        return (
            self._evaluator.definitions.method(made, identifier(call.func)) if isinstance(made, cst.ClassDef) else None
        )

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
