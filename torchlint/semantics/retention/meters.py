"""Methods that keep what they are given: meters that sum up, histories that append."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import bind, identifier, method_call


class Given(NamedTuple):
    """What a call hands over to an object that keeps it."""

    keeper: cst.BaseExpression
    """The object, or its attribute where the method is one of the same object."""

    values: tuple[cst.BaseExpression, ...]


class Meters:
    """Looks into the methods of the file that a call runs."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._kept: dict[int, dict[str, cst.BaseExpression]] = {}
        self._keeping: frozenset[str] | None = None

    def given(self, call: cst.Call) -> Given | None:
        """Return what a method call gives to an object of a class of the file that keeps it."""
        method = method_call(call)
        if method is None or method.attr.value not in self._keeping_methods():
            return None
        owner = self._evaluator.value(method.value).definition
        if not isinstance(owner, cst.ClassDef):
            return None
        function = self._evaluator.definitions.method(owner, method.attr.value)
        if function is None:
            return None
        arguments = bind(call.args, [p.name.value for p in parameters(function)][1:])
        kept = self._parameters(function)
        values = tuple(value for name, value in arguments.named.items() if name in kept)
        if not values:
            return None
        of_itself = isinstance(method.value, cst.Name) and self._evaluator.definitions.receiver(method.value) is owner
        return Given(next(iter(kept.values())) if of_itself else method.value, values)

    def _keeping_methods(self) -> frozenset[str]:
        """The names of the functions that keep something: asked before what object a method is called on."""
        if self._keeping is None:
            adders = (n for n in self._tree.nodes(cst.AugAssign) if self._is_sum(n))
            appenders = (n for n in self._tree.nodes(cst.Call) if self._is_append(n))
            self._keeping = frozenset(
                around.name.value
                for node in (*adders, *appenders)
                for around in self._tree.ancestors(node)
                if isinstance(around, cst.FunctionDef)
            )
        return self._keeping

    def _parameters(self, function: cst.FunctionDef) -> dict[str, cst.BaseExpression]:
        """The parameters of a method that it keeps as they are, and the attribute that then holds them."""
        key = id(function)
        if key not in self._kept:
            names = {parameter.name.value for parameter in parameters(function)[1:]}
            self._kept[key] = {name: place for name, place in self._stored(function) if name in names}
            if self._kept[key]:
                for node in self._tree.descendants(function.body):
                    for name in _looked_at(node):
                        self._kept[key].pop(name, None)
        return self._kept[key]

    def _stored(self, function: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
        for node in self._tree.descendants(function.body):
            if isinstance(node, cst.AugAssign):
                if self._is_sum(node) and not self._evaluator.gradients.disabled(node):
                    yield from ((name, node.target) for name in _terms(node.value))
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and self._is_append(node):
                place = node.func.value
                yield from ((name, place) for name in _terms(node.args[0].value))

    def _is_sum(self, node: cst.AugAssign) -> bool:
        return isinstance(node.operator, cst.AddAssign) and self._is_own(node.target)

    def _is_append(self, node: cst.Call) -> bool:
        method = method_call(node, "append", "appendleft")
        return method is not None and len(node.args) == 1 and self._is_own(method.value)

    def _is_own(self, place: cst.BaseExpression) -> bool:
        """Whether a place is an attribute of ``self``, or in one."""
        while isinstance(place, cst.Subscript):
            place = place.value
        owner = place.value if isinstance(place, cst.Attribute) else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None


def _terms(value: cst.BaseExpression) -> Iterator[str]:
    """The names in sums and products."""
    if isinstance(value, cst.Name):
        yield value.value
    elif isinstance(value, cst.BinaryOperation):
        yield from _terms(value.left)
        yield from _terms(value.right)


def _looked_at(node: cst.CSTNode) -> Iterator[str]:
    """The names that a method binds anew, or asks for their type: it may detach them."""
    if isinstance(node, cst.Assign):
        yield from (identifier(target.target) for target in node.targets if isinstance(target.target, cst.Name))
    elif isinstance(node, cst.Call) and identifier(node.func) in ("isinstance", "is_tensor", "hasattr"):
        yield from (identifier(argument.value) for argument in node.args[:1])
