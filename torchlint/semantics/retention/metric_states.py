"""What metrics of Ignite keep of the predictions that they are given: with their graph, if a trainer gives them."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.stores import Store, appended, container, summed
from torchlint.semantics.tables.torch_api import DETACHED_RESULTS, SEQUENCE_METHODS
from torchlint.semantics.values import Origin
from torchlint.syntax.calls import identifier

_UPDATE = "update"
_PROTOCOL = frozenset(("reset", _UPDATE, "compute"))
_IGNITE = ("ignite.metrics.", "ignite.contrib.metrics.")
_NO_GRAPH = DETACHED_RESULTS | frozenset("item tolist detach numpy size numel dim ndimension".split())
_WHOLE_NUMBERS = frozenset(f"torch.{name}" for name in "long int64 int int32 short int16 int8 uint8 bool".split())
_MAX_DEPTH = 12


class MetricStates:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @cached_property
    def occur(self) -> bool:
        """Whether the file defines a method that can update a metric."""
        return any(function.name.value == _UPDATE for function in self._evaluator.tree.nodes(cst.FunctionDef))

    def kept(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Store | None:
        """Return what a statement of a metric's ``update(output)`` keeps of the prediction with its graph."""
        found = self._store(node)
        if found is None or not self._is_of_object(found.variable):
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or not self._updates_metric(function) or self._evaluator.gradients.disabled(node):
            return None
        carrying = tuple(value for value in found.values if self._carries(value, function, 0))
        return Store(found.variable, carrying, found.is_stored) if carrying else None

    @staticmethod
    def _store(node: cst.AugAssign | cst.Assign | cst.Call) -> Store | None:
        if isinstance(node, cst.AugAssign):
            return Store(node.target, (node.value,), False) if isinstance(node.operator, cst.AddAssign) else None
        return appended(node) if isinstance(node, cst.Call) else summed(node)

    def _is_of_object(self, variable: cst.BaseExpression) -> bool:
        variable = container(variable) or variable
        held = variable.value if isinstance(variable, cst.Attribute) else None
        return isinstance(held, cst.Name) and self._evaluator.definitions.receiver(held) is not None

    def _updates_metric(self, function: cst.FunctionDef) -> bool:
        """Whether a method is ``update(self, output)`` of a metric: of Ignite's, or with all that Ignite asks for."""
        definitions = self._evaluator.definitions
        owner = definitions.owner(function)
        if owner is None or function.name.value != _UPDATE or len(function.params.params) != 2:
            return False
        if any(name.startswith(_IGNITE) for name in definitions.ancestry(owner)):
            return True
        is_metric = any(identifier(base.value).endswith("Metric") for base in owner.bases)
        return is_metric and definitions.methods(owner).keys() >= _PROTOCOL

    def _carries(self, value: cst.BaseExpression, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a value is computed from the prediction by what keeps the graph."""
        if depth > _MAX_DEPTH:
            return False
        deeper = depth + 1
        if isinstance(value, cst.Name):
            bindings = self._evaluator.flow.definitions(value)
            return bool(bindings) and all(self._binds_graph(binding, function, deeper) for binding in bindings)
        if isinstance(value, cst.Subscript):
            is_given = isinstance(value.value, cst.Name) and self._is_output(value.value, function)
            return _is_zero(value) if is_given else self._part_carries(value, function, deeper)
        if isinstance(value, cst.BinaryOperation):
            return self._carries(value.left, function, deeper) or self._carries(value.right, function, deeper)
        if isinstance(value, cst.UnaryOperation):
            return not isinstance(value.operator, cst.Not) and self._carries(value.expression, function, deeper)
        return isinstance(value, cst.Call) and self._call_carries(value, function, deeper)

    def _call_carries(self, call: cst.Call, function: cst.FunctionDef, depth: int) -> bool:
        given = (self._evaluator.names.qualified(argument.value) for argument in call.args)
        if identifier(call.func) in _NO_GRAPH or any(dtype in _WHOLE_NUMBERS for dtype in given):
            return False
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            return name.startswith("torch.") and any(self._carries(a.value, function, depth) for a in call.args)
        if self._evaluator.value(call.func).origin is Origin.LOSS:
            return any(self._carries(argument.value, function, depth) for argument in call.args)
        return isinstance(call.func, cst.Attribute) and self._carries(call.func.value, function, depth)

    def _binds_graph(self, binding: Binding, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a variable is bound to the prediction: the first of what ``update`` is given, or made of it."""
        if binding.kind is BindingKind.PARAMETER or binding.value is None:
            return False
        if binding.path:
            given = isinstance(binding.value, cst.Name) and self._is_output(binding.value, function)
            return given and binding.path == (0,)
        return self._carries(binding.value, function, depth)

    def _is_output(self, name: cst.Name, function: cst.FunctionDef) -> bool:
        bindings = self._evaluator.flow.definitions(name)
        return len(bindings) == 1 and bindings[0].node is function.params.params[1].name

    def _part_carries(self, part: cst.Subscript, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a part of a tensor carries a graph: of what ``max`` chooses the values, and not their indices."""
        chosen = isinstance(part.value, cst.Call) and identifier(part.value.func) in SEQUENCE_METHODS
        return (not chosen or _is_zero(part)) and self._carries(part.value, function, depth)


def _is_zero(part: cst.Subscript) -> bool:
    index = part.slice[0].slice if len(part.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) and index.value.value == "0"
