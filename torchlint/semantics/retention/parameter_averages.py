"""Averages of a model's parameters that are computed with gradients on: each carries the graph of all before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.frozen import Frozen
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.stores import Store, added, container, summed
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import method_call
from torchlint.syntax.remembered import remembered

_UPDATES = re.compile(r"(^|_)(update|step|ema|average|accumulate)(_|$)")
_PARAMETERS = ("parameters", "named_parameters")
_CARRY = frozenset(("to", "float", "cpu", "clone", "type_as", "double"))


class ParameterAverages:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, frozen: Frozen) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._frozen = frozen

    @cached_property
    def occur(self) -> bool:
        """Whether a function of the file is named for updating something: no other one is looked into."""
        return any(_UPDATES.search(function.name.value) for function in self._tree.nodes(cst.FunctionDef))

    @remembered
    def kept(self, node: cst.Assign | cst.Call) -> Store | None:
        """Return what ``self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * parameter`` keeps of a parameter.

        ``average.mul_(0.9).add_(parameter, alpha=0.1)``; None where gradients are off, or it is no update.
        """
        found = summed(node) if isinstance(node, cst.Assign) else added(node)
        if found is None or len(found.values) != 1 or not self._is_average(found.variable):
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or not _UPDATES.search(function.name.value) or self._is_of_optimizer(function):
            return None
        if self._evaluator.gradients.disabled(node) or self._evaluator.gradients.left_open(node):
            return None
        value = found.values[0]
        return found if any(self._carries(parameter, value) for parameter in self._parameters(value)) else None

    def _is_of_optimizer(self, function: cst.FunctionDef) -> bool:
        owner = self._evaluator.definitions.owner(function)
        return owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.OPTIMIZER

    def _is_average(self, variable: cst.BaseExpression) -> bool:
        """Whether a variable is an item that the object holds, or a parameter of another model."""
        if isinstance(variable, cst.Name):
            return self._is_parameter(variable) and self._asks_for_none(variable)
        held = container(variable)
        owner = held.value if isinstance(held, cst.Attribute) else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None

    def _asks_for_none(self, variable: cst.Name) -> bool:
        """Whether the class says that its parameters get no gradient: others refuse to be written to in place."""
        function = self._evaluator.definitions.enclosing_function(variable)
        owner = self._evaluator.definitions.owner(function) if function is not None else None
        asked = self._tree.below(owner, cst.Attribute) if owner is not None else []
        return any(attribute.attr.value in ("requires_grad", "requires_grad_") for attribute in asked)

    def _parameters(self, value: cst.BaseExpression) -> Iterator[cst.Name]:
        for name in self._tree.below(value, cst.Name):
            if self._is_parameter(name):
                yield name

    def _is_parameter(self, name: cst.Name) -> bool:
        """Whether a loop over the parameters of a model, perhaps of two at a time, binds a name."""
        bindings = self._evaluator.flow.definitions(name)
        return bool(bindings) and all(
            binding.kind is BindingKind.ITERATION
            and isinstance(loop := self._tree.enclosing(binding.node, cst.For), cst.For)
            and self._takes_parameter(loop, binding.node)
            for binding in bindings
        )

    def _takes_parameter(self, loop: cst.For, target: cst.CSTNode) -> bool:
        """Whether a target of a loop is a parameter: the second of ``named_parameters()``, any of ``parameters()``."""
        iterated: list[cst.BaseExpression] = [loop.iter]
        if isinstance(loop.iter, cst.Call) and self._evaluator.names.qualified(loop.iter.func) == "builtins.zip":
            iterated = [argument.value for argument in loop.iter.args]
        calls = [method_call(each, *_PARAMETERS) for each in iterated]
        if not all(call is not None for call in calls):
            return False
        if calls[-1] is not None and self._excludes(calls[-1].value):
            return False
        if all(call is not None and call.attr.value == "parameters" for call in calls):
            return True
        pair = self._tree.enclosing(target, cst.Tuple, cst.For)
        return isinstance(pair, cst.Tuple) and pair.elements[-1].value is target

    def _excludes(self, model: cst.BaseExpression) -> bool:
        return isinstance(model, (cst.Name, cst.Attribute)) and self._frozen.holds(model)

    def _carries(self, parameter: cst.Name, value: cst.BaseExpression) -> bool:
        """Whether a value is computed of a parameter by arithmetic alone: not of its data, size, norm or gradient."""
        node: cst.CSTNode | None = parameter
        while node is not value:
            parent = self._tree.parent(node) if node is not None else None
            if isinstance(parent, cst.Attribute) and parent.value is node and parent.attr.value in _CARRY:
                parent = self._tree.parent(parent)
            elif not isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
                return False
            node = parent
        return True
