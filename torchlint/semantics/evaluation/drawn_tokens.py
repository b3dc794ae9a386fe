"""Functions that draw or choose one token after the other, and hand out nothing by which gradients could go back."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.entry_points import TEXTS
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import Graph, Kind, Value
from torchlint.syntax.calls import identifier, method_call

_GENERATES = re.compile(r"^(\w*_)?(generate|sample|decode|translate|beam_search|greedy_search|complete)(_\w+)?$")
ACTS = re.compile(r"(^|_)(actions?|acts?|moves?|policy|rollouts?|episodes?|trajector(y|ies)|experiences?|games?)(_|$)")
"""What acts, and is trained by what it has drawn."""

_DRAWS = frozenset("multinomial argmax topk".split())
_DISTRIBUTION = "torch.distributions.Categorical"
_WITHOUT_GRAPH = frozenset((Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.NDARRAY))
_MAX_DEPTH = 4


class DrawnTokens:
    """Finds the loops in which they do."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def loops(self, function: cst.FunctionDef) -> list[cst.For | cst.While]:
        """Return the loops of a function that draw, none if something with a graph may leave the function."""
        name = function.name.value
        if _GENERATES.match(name) is None or ACTS.search(name) or self._evaluator.definitions.yielded(function):
            return []
        around: list[cst.For | cst.While] = [
            *self._tree.below(function.body, cst.For),
            *self._tree.below(function.body, cst.While),
        ]
        found = [loop for loop in around if any(map(self._draws, self._tree.below(loop.body, cst.Call)))]
        return found if found and not self._keeps(function) and self._hands_out_values(function) else []

    def _draws(self, call: cst.Call) -> bool:
        if identifier(call.func) in _DRAWS:
            return True
        method = method_call(call, "sample")
        made = [method.value, *self._evaluator.held_by(method.value)] if method is not None else []
        calls = (each for each in made if isinstance(each, cst.Call))
        return any(self._evaluator.names.qualified(each.func) == _DISTRIBUTION for each in calls)

    def _keeps(self, function: cst.FunctionDef) -> bool:
        """Whether a function puts anything by which gradients could go back where it outlives a statement.

        Into its object, ``self.hidden = hidden``, into what it is given, or into a container that it returns.
        """
        assigned = [
            (t.target, each.value) for each in self._tree.below(function.body, cst.Assign) for t in each.targets
        ]
        assigned += [(each.target, each.value) for each in self._tree.below(function.body, cst.AugAssign)]
        for target, value in assigned:
            for part in _parts(target):
                if isinstance(part, cst.Attribute) or (
                    isinstance(part, cst.Subscript) and not self._is_put(part, value)
                ):
                    return True
        return not all(map(self._only_puts_values, self._tree.below(function.body, cst.Call)))

    def _is_put(self, place: cst.Subscript, value: cst.BaseExpression) -> bool:
        """Whether what goes into a container that the function has made is a value: ``tokens[:, t] = token``."""
        return self._is_made_here(place.value) and self._is_value(value, 0)

    def _only_puts_values(self, call: cst.Call) -> bool:
        """Whether a call changes no container in place, or puts values into one that the function has made."""
        method = method_call(call)
        name = method.attr.value if method is not None else ""
        if method is None or not (name in STORES or (name.endswith("_") and not name.endswith("__"))):
            return True
        return self._is_made_here(method.value) and all(self._is_value(argument.value, 0) for argument in call.args)

    def _is_made_here(self, container: cst.BaseExpression) -> bool:
        while isinstance(container, (cst.Subscript, cst.Attribute)):
            container = container.value
        bindings = self._evaluator.flow.definitions(container) if isinstance(container, cst.Name) else []
        return bool(bindings) and all(binding.kind is not BindingKind.PARAMETER for binding in bindings)

    def _hands_out_values(self, function: cst.FunctionDef) -> bool:
        results = self._evaluator.definitions.results(function)
        return all(self._is_value(result, 0) for result in results)

    def _is_value(self, result: cst.BaseExpression, depth: int) -> bool:
        """Whether a result is text, numbers or a tensor without a graph, or what a vocabulary makes of those."""
        if depth > _MAX_DEPTH:
            return False
        if is_without_graph(self._evaluator.value(result)):
            return True
        if isinstance(result, (cst.Tuple, cst.List)):
            return all(self._is_value(element.value, depth + 1) for element in result.elements)
        if isinstance(result, cst.Subscript):
            return bool(TEXTS.search(identifier(result.value))) or self._is_value(result.value, depth + 1)
        if isinstance(result, cst.IfExp):
            return self._is_value(result.body, depth + 1) and self._is_value(result.orelse, depth + 1)
        if isinstance(result, cst.Name):
            bindings = self._evaluator.flow.definitions(result)
            return bool(bindings) and all(self._is_bound_to_value(binding, depth + 1) for binding in bindings)
        if isinstance(result, cst.BinaryOperation):
            return self._is_value(result.left, depth + 1) and self._is_value(result.right, depth + 1)
        method = method_call(result)
        if isinstance(result, cst.Call) and method is not None and TEXTS.search(identifier(method.value)):
            return all(self._is_value(argument.value, depth + 1) for argument in result.args)
        return False

    def _is_bound_to_value(self, binding: Binding, depth: int) -> bool:
        """Whether a variable is given a value, or is a parameter, of which the model has computed nothing."""
        if binding.kind is BindingKind.PARAMETER:
            return True
        is_plain = binding.kind is BindingKind.ASSIGNMENT and not binding.path
        return is_plain and binding.value is not None and self._is_value(binding.value, depth)


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]


def is_without_graph(value: Value) -> bool:
    """Return whether a value, and all parts of it, are known to carry no graph."""
    if value.kind in _WITHOUT_GRAPH:
        return True
    if value.is_tensor:
        return value.graph is Graph.DETACHED
    parts = value.elements or ((value.element,) if value.element is not None else ())
    return (
        value.kind in (Kind.SEQUENCE, Kind.ITERATOR, Kind.MAPPING) and bool(parts) and all(map(is_without_graph, parts))
    )
