"""Models that a file trains, and methods by which it does so: ``loss = net.compute_loss(x)``, ``loss.backward()``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.model_classes import AUTOGRAD
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import element_at, identifier
from torchlint.syntax.canonical import canonical

_DETACHES = frozenset("detach item tolist numpy data size shape argmax argmin argsort".split())

_Key = tuple[int, str]


class TrainedCalls:
    """Tells them: what they give has a graph, unless gradients are off."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward

    def include(self, called: cst.BaseExpression) -> bool:
        """Return whether a backward pass of the file starts from what this model, or method of a model, gives.

        The model is known by what it is called, and as an attribute by the class of its object.
        """
        if not isinstance(called, (cst.Name, cst.Attribute)) or identifier(called) not in self._names:
            return False
        return self._key(called) in self._trained

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of all of them: asked before anything is compared."""
        return frozenset(text.rpartition(".")[2] for _, text in self._trained)

    @cached_property
    def _trained(self) -> frozenset[_Key]:
        waiting = [(loss, False) for loss in self._backward.losses(self._tree.module)]
        seen: set[tuple[int, bool]] = set()
        found: set[_Key] = set()
        while waiting:
            expression, is_input = waiting.pop()
            if (id(expression), is_input) in seen:
                continue
            seen.add((id(expression), is_input))
            if isinstance(expression, cst.Call) and isinstance(expression.func, (cst.Name, cst.Attribute)):
                if self._evaluator.gradients.disabled(expression):
                    continue
                if not is_input or self._is_model(expression.func):
                    found.add(self._key(expression.func))
            waiting += ((source, is_input or is_one) for source, is_one in self._sources(expression))
        return frozenset(found)

    def _key(self, called: cst.Name | cst.Attribute) -> _Key:
        root: cst.BaseExpression = called
        while isinstance(root, cst.Attribute):
            root = root.value
        owner = self._evaluator.definitions.receiver(root) if isinstance(root, cst.Name) else None
        return id(owner), canonical(called)

    def _sources(self, value: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, bool]]:
        """What a value is computed from, and whether that may have no graph: tokens that a model has sampled."""
        if isinstance(value, cst.Name):
            yield from ((held, False) for held in self._held(value))
        elif isinstance(value, cst.BinaryOperation):
            both = isinstance(value.operator, cst.Add)
            if both or self._is_plain(value.right):
                yield value.left, False
            if both or self._is_plain(value.left):
                yield value.right, False
        elif isinstance(value, cst.UnaryOperation):
            yield value.expression, False
        elif isinstance(value, (cst.Tuple, cst.List)):
            yield from ((element.value, False) for element in value.elements)
        elif isinstance(value, cst.Subscript) or (isinstance(value, cst.Attribute) and not _detaches(value)):
            yield value.value, False
        elif isinstance(value, cst.Call):
            if isinstance(value.func, cst.Attribute) and not self._is_model(value.func.value):
                yield value.func, False
            if value.args and not value.args[0].star and self._computes(value.func):
                yield value.args[0].value, self._is_model(value.func) and not self._is_loss(value.func)

    def _held(self, variable: cst.Name) -> Iterator[cst.BaseExpression]:
        """What a variable holds, and what it held before a statement added to it: ``loss += net.penalty()``."""
        for binding in self._evaluator.flow.definitions(variable):
            made = element_at(binding.value, binding.path) or binding.value
            if isinstance(made, cst.BaseExpression):
                yield made
            added = isinstance(self._evaluator.flow.statement(binding.node), cst.AugAssign)
            if added and isinstance(binding.node, cst.Name) and binding.node is not variable:
                yield binding.node

    def _is_plain(self, factor: cst.BaseExpression) -> bool:
        """Whether a factor is data or comes from no call, so that the other one has the graph: ``args.weight``."""
        value = self._evaluator.value(factor)
        if value.origin is Origin.BATCH or value.kind is Kind.NUMBER:
            return True
        names = [factor] if isinstance(factor, cst.Name) else self._tree.below(factor, cst.Name)
        held = (each for name in names for each in self._held(name))
        return not isinstance(factor, cst.Call) and not any(
            isinstance(each, cst.Call) or self._tree.below(each, cst.Call) for each in (factor, *held)
        )

    def _computes(self, called: cst.BaseExpression) -> bool:
        """Whether what is called gives a value with the graph of its first argument: a loss, a function of torch."""
        name = self._evaluator.names.qualified(called) or ""
        if name == "builtins.sum" or (name.startswith("torch.") and not name.startswith(AUTOGRAD)):
            return True
        return self._is_model(called) or self._is_loss(called)

    def _is_loss(self, called: cst.BaseExpression) -> bool:
        return self._evaluator.value(called).origin is Origin.LOSS

    def _is_model(self, expression: cst.BaseExpression) -> bool:
        return self._evaluator.value(expression).kind is Kind.MODULE


def _detaches(attribute: cst.Attribute) -> bool:
    return attribute.attr.value in _DETACHES


def only_collects(method: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a method of a model runs nothing of it: it hands out what its forward passes have kept."""
    owner = method.params.params[0].name.value if method.params.params else ""
    for call in evaluator.tree.below(method.body, cst.Call):
        is_own = isinstance(call.func, cst.Attribute) and identifier(call.func.value) == owner
        if is_own or evaluator.value(call.func).kind is Kind.MODULE:
            return False
    read = (evaluator.value(each) for each in evaluator.tree.below(method.body, cst.Attribute))
    return not any(value.kind is Kind.MODULE or value.origin is Origin.PARAMETER for value in read)
