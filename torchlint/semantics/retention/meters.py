"""Methods that keep what they are given: meters that sum up, histories that append."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.stores import Store, container, stored, summed
from torchlint.semantics.tables.container_methods import APPENDS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import bind, identifier, method_call
from torchlint.syntax.canonical import is_same

_REST = "**"
"""What stands for the keyword arguments of a method that have no parameter of their own."""

# What is a tensor by its name: a meter that takes any number calls it `value`.
_TENSORS = re.compile(
    r"(^|_)(loss(es)?|outputs?|logits?|preds?|predictions?|embeddings?|features?|feats?|log_?probs?|entropy|hidden)(_|$)"
)
_SAME = ("flatten", "view", "reshape", "squeeze", "unsqueeze", "mean", "sum", "clone", "float", "cpu", "to")
"""Methods whose results carry the graph of their tensor."""


class Given(NamedTuple):
    """What a call hands over to an object that keeps it."""

    keeper: cst.BaseExpression
    """The object, or its attribute where the method is one of the same object."""

    values: tuple[cst.BaseExpression, ...]
    function: cst.FunctionDef
    """The method that keeps them."""

    names: tuple[str, ...]
    """Its parameters that are given them, in the same order."""


class Meters:
    """Looks into the methods of the file that a call runs."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._kept: dict[int, dict[str, cst.BaseExpression]] = {}
        self._only_passing: set[int] = set()
        self._keeping: frozenset[str] | None = None

    def given(self, call: cst.Call) -> Given | None:
        """Return what a call of an object of a class of the file, or of one of its methods, gives it to keep."""
        found = self._method(call)
        if found is None:
            return None
        keeper, function = found
        if not isinstance(keeper, cst.Name) or self._evaluator.definitions.receiver(keeper) is None:
            return self._taken(call, function, keeper)
        methods = (function, *self._evaluator.definitions.overriding(function))
        return next((taken for method in methods if (taken := self._taken(call, method)) is not None), None)

    def inside(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the method in which a statement keeps parameters, if that is where to detach them."""
        if not self._keeping_methods():
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or function.name.value not in self._keeping_methods():
            return None
        return function if self.names_kept(function, node) and self.keeps_tensors(function) else None

    def names_kept(self, function: cst.FunctionDef, node: cst.CSTNode) -> frozenset[str]:
        """Return the parameters of a method that a statement in it keeps."""
        places = self._parameters(function).items()
        return frozenset(name for name, place in places if self._tree.within(place, node))

    def places(self, given: Given) -> list[cst.BaseExpression]:
        """Return the attributes that hold what a call hands over, in the same order."""
        kept = self._parameters(given.function)
        return [kept[name] for name in given.names]

    def keeps_tensors(self, function: cst.FunctionDef) -> bool:
        """Return whether a method knows that it keeps tensors, so that it is the place to detach them.

        One that its own object calls, or that names or treats what it is given as a tensor; a meter that takes numbers
        of any kind leaves that to its callers.
        """
        names = self._parameters(function).keys() - {_REST}
        if id(function) in self._only_passing:
            return False
        return bool(names) and (self._is_own_helper(function) or any(self._is_tensor(n, function) for n in names))

    def _is_own_helper(self, function: cst.FunctionDef) -> bool:
        """Whether all calls of a method are of the same object: ``self.update_average(loss)``."""
        called = [call.func for call in self._evaluator.callers(function)]
        receiver = self._evaluator.definitions.receiver
        return bool(called) and all(
            isinstance(f, cst.Attribute) and isinstance(f.value, cst.Name) and receiver(f.value) is not None
            for f in called
        )

    def _is_tensor(self, name: str, function: cst.FunctionDef) -> bool:
        """Whether a parameter is called a loss or an output, or the method asks it for something that numbers lack."""
        asked = (a.value for a in self._tree.below(function.body, cst.Attribute))
        return bool(_TENSORS.search(name)) or any(isinstance(a, cst.Name) and a.value == name for a in asked)

    def _taken(
        self, call: cst.Call, function: cst.FunctionDef, keeper: cst.BaseExpression | None = None
    ) -> Given | None:
        """What a method keeps of the arguments of a call, in the object or the attribute that then holds something."""
        own = [p.name.value for p in parameters(function)][1:]
        kept = self._parameters(function)
        found = [(value, name) for name, value in bind(call.args, own).named.items() if name in kept]
        if _REST in kept:
            rest = (a for a in call.args if a.keyword is not None and a.keyword.value not in own)
            found += [(argument.value, _REST) for argument in rest]
        if not found:
            return None
        values, names = zip(*found, strict=True)
        return Given(keeper if keeper is not None else kept[names[0]], values, function, names)

    def _method(self, call: cst.Call) -> tuple[cst.BaseExpression, cst.FunctionDef] | None:
        """The object that a call may hand something over to, and the function of the file that then runs."""
        method = method_call(call)
        keeper, name = (method.value, method.attr.value) if method is not None else (call.func, "__call__")
        found = self._of_class(keeper, name)
        if found is None and method is not None and name != "__call__":
            return self._of_class(call.func, "__call__")
        return found

    def _of_class(self, keeper: cst.BaseExpression, name: str) -> tuple[cst.BaseExpression, cst.FunctionDef] | None:
        if name not in self._keeping_methods():
            return None
        value = self._evaluator.value(keeper)
        if not isinstance(value.definition, cst.ClassDef) or (name == "__call__" and value.kind is not Kind.INSTANCE):
            return None
        function = self._evaluator.definitions.method(value.definition, name)
        return (keeper, function) if function is not None else None

    def _keeping_methods(self) -> frozenset[str]:
        """The names of the functions that keep something: asked before what object a method is called on."""
        if self._keeping is None:
            adders = (n for n in self._tree.nodes(cst.AugAssign) if self._is_sum(n))
            assigned = self._tree.nodes(cst.Assign)
            averages = (n for n in assigned if self._average(n) or self._placed(n))
            appenders = (n for n in self._tree.nodes(cst.Call) if self._is_append(n))
            self._keeping = self._around((*adders, *averages, *appenders))
            calls = self._tree.nodes(cst.Call) if self._keeping else ()
            self._keeping |= self._around(call for call in calls if self._is_passed_on(call))
        return self._keeping

    def _around(self, nodes: Iterable[cst.CSTNode]) -> frozenset[str]:
        ancestors = (around for node in nodes for around in self._tree.ancestors(node))
        return frozenset(around.name.value for around in ancestors if isinstance(around, cst.FunctionDef))

    def _is_passed_on(self, call: cst.Call) -> bool:
        """Whether a method may hand something on to what its object holds: ``self.meters[k].update(v)``."""
        method = method_call(call)
        if method is None or self._keeping is None or method.attr.value not in self._keeping:
            return False
        held = method.value.value if isinstance(method.value, cst.Subscript) else method.value
        return isinstance(held, cst.Attribute) and self._is_own(held)

    def _parameters(self, function: cst.FunctionDef) -> dict[str, cst.BaseExpression]:
        """The parameters of a method that it keeps as they are, and the attribute that then holds them."""
        key = id(function)
        if key not in self._kept:
            names = {parameter.name.value: parameter.name.value for parameter in parameters(function)[1:]}
            names |= dict.fromkeys(self._rest(function), _REST)
            stored = {name: place for name, place in self._stored(function) if name in names}
            if not stored:
                self._kept[key] = {}  # what passes something on to itself keeps nothing
                stored = {name: place for name, place in self._passed_on(function) if name in names}
                self._only_passing |= {key} if stored else set()
            if stored:
                for node in self._tree.descendants(function.body):
                    for name in _looked_at(node):
                        stored.pop(name, None)
            self._kept[key] = {names[name]: place for name, place in stored.items()}
        return self._kept[key]

    def _rest(self, function: cst.FunctionDef) -> Iterator[str]:
        """The names that a method gives to each of its other keyword arguments: ``for k, v in kwargs.items()``."""
        rest = function.params.star_kwarg
        if rest is None:
            return
        for loop in self._tree.below(function.body, cst.For):
            method = method_call(loop.iter, "items", "values")
            if method is None or identifier(method.value) != rest.name.value:
                continue
            target = loop.target.elements[-1].value if isinstance(loop.target, cst.Tuple) else loop.target
            if isinstance(target, cst.Name):
                yield target.value

    def _stored(self, function: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
        for node in self._tree.descendants(function.body):
            if isinstance(node, (cst.AugAssign, cst.Assign)):
                if not self._evaluator.gradients.disabled(node):
                    yield from self._summed(node)
                if isinstance(node, cst.Assign) and (placed := self._placed(node)) is not None:
                    yield from ((name, placed.variable) for term in placed.values for name in _terms(term))
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and self._is_append(node):
                place = node.func.value
                yield from ((name, place) for name in _terms(node.args[0].value))

    def _passed_on(self, function: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
        """What a method hands over to objects that its own object holds, and that keep it."""
        for call in self._tree.below(function.body, cst.Call):
            is_kept = self._is_passed_on(call) and not self._evaluator.gradients.disabled(call)
            found = self._method(call) if is_kept else None
            taken = self._taken(call, found[1], found[0]) if found is not None else None
            if taken is not None:
                yield from ((name, taken.keeper) for value in taken.values for name in _terms(value))

    def _summed(self, node: cst.AugAssign | cst.Assign) -> Iterator[tuple[str, cst.BaseExpression]]:
        """What a statement adds to an attribute, or to a running average in one."""
        if isinstance(node, cst.Assign):
            average = self._average(node)
            if average is not None:
                yield from ((name, average.variable) for term in average.values for name in _terms(term))
        elif self._is_sum(node):
            yield from ((name, node.target) for name in _terms(node.value))

    def _average(self, node: cst.Assign) -> Store | None:
        """``self.mean = 0.9 * self.mean + 0.1 * value``"""
        found = summed(node)
        return found if found is not None and self._is_own(found.variable) else None

    def _placed(self, node: cst.Assign) -> Store | None:
        """``self.values[self.place] = value`` in a method that then goes on to the next place"""
        found = stored(node)
        if found is None or not isinstance(found.index, cst.Attribute) or not self._is_own(found.variable):
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        steps: list[cst.AugAssign | cst.AssignTarget] = []
        if function is not None:
            steps = [
                *self._tree.below(function.body, cst.AugAssign),
                *self._tree.below(function.body, cst.AssignTarget),
            ]
        return found if any(is_same(step.target, found.index) for step in steps) else None

    def _is_sum(self, node: cst.AugAssign) -> bool:
        return isinstance(node.operator, cst.AddAssign) and self._is_own(node.target)

    def _is_append(self, node: cst.Call) -> bool:
        method = method_call(node, *APPENDS)
        return method is not None and len(node.args) == 1 and self._is_own(method.value)

    def _is_own(self, place: cst.BaseExpression) -> bool:
        """Whether a place is an attribute of ``self``, or in one."""
        is_part = False
        while (holder := container(place)) is not None:
            place, is_part = holder, True
        owner = place.value if isinstance(place, cst.Attribute) else place if is_part else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None


def _terms(value: cst.BaseExpression) -> Iterator[str]:
    """The names in sums and products."""
    if isinstance(value, cst.Name):
        yield value.value
    elif isinstance(value, cst.BinaryOperation):
        yield from _terms(value.left)
        yield from _terms(value.right)
    elif (method := method_call(value, *_SAME)) is not None:
        yield from _terms(method.value)


def _looked_at(node: cst.CSTNode) -> Iterator[str]:
    """The names that a method binds anew, or asks for their type: it may detach them."""
    if isinstance(node, cst.Assign):
        yield from (identifier(target.target) for target in node.targets if isinstance(target.target, cst.Name))
    elif isinstance(node, cst.Call) and identifier(node.func) in ("isinstance", "is_tensor", "hasattr"):
        yield from (identifier(argument.value) for argument in node.args[:1])
