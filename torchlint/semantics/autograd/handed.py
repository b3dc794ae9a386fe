"""Losses that code gets from elsewhere in the file: hooks as an argument, or as a field of an object they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.differentiated import PASSES_ON, starts
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind, bound_places
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind, Origin
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_DIFFERENTIATES = re.compile(r"(^|_)(grads?|gradients?|hypergrad\w*|jacobian|hessian|jvp|vjp|hvp)(_|$)")
_OBJECTIVE = re.compile(r"(^|_)(loss|objective|risk|penalty|energy|regulari[sz]er)$")
# Classes whose methods give terms of losses, but for those that evaluate.
_OF_LOSSES = re.compile(r"(Loss|Criterion|Prior|Energy|Regulari[sz]er|Penalty|Objective|Guidance|Constraint)(es|s)?$")
_MEASURES = re.compile(
    r"(^|_)(val|valid|validate|validation|test|eval|evaluate|predict|infer|inference|generate|sample|report|score)(_|$)"
)
_EVALUATES = re.compile(r"^_?(val|valid|validation|test|eval|evaluate|compute_val|mean|avg|average|report|get_test)_")
_LOADER = re.compile(r"loader", re.IGNORECASE)
_MOST_CALLS = 3
"""Through how many methods an argument is followed to the step that computes it."""


class HandedLosses:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward

    def is_one(self, value: cst.BaseExpression) -> bool:
        """Return whether a value is computed from a loss that a step differentiates and hands to this function."""
        return any(self._is_argument(leaf, 0) or self._is_of_argument(leaf) for leaf in _leaves(value))

    def is_wanted(self, variable: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a caller in the file may backpropagate what a function returns of one of its variables."""
        is_number = self._evaluator.returned(function).kind is Kind.NUMBER
        parts = self._backward.returned_parts(variable, function) if not is_number else []
        calls = self._evaluator.callers(function) if parts != [] else []
        return any(self._is_differentiated(call, parts) for call in calls)

    def may_be_differentiated(
        self,
        values: Sequence[cst.BaseExpression],
        variable: cst.BaseExpression,
        function: cst.FunctionDef,
        *,
        evaluates: bool,
    ) -> bool:
        """Return whether a caller, or a function out of sight, may backpropagate what a function collects.

        Losses, one for each scale, go to callers in other files, unless the function evaluates.
        """
        if self.is_wanted(variable, function) or self.is_given_with_model(variable, function):
            return True
        if is_objective(function, self._evaluator):
            return True
        losses = not (evaluates or self._is_over_loader(values)) and any(
            self._evaluator.value(value).origin is Origin.LOSS for value in values
        )
        returned = losses and self._backward.returned_parts(variable, function) != []
        return returned and not self._evaluator.callers(function)

    def _is_over_loader(self, values: Sequence[cst.BaseExpression]) -> bool:
        """Whether a loop over a loader computes values: nobody backpropagates those of all batches."""
        loops = (self._tree.enclosing(value, cst.For, cst.FunctionDef) for value in values)
        return any(isinstance(loop, cst.For) and _LOADER.search(_iterated(loop)) is not None for loop in loops)

    def is_given_with_model(self, variable: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Return whether a function out of sight is given a variable and a model: ``implicit_gradient(loss, net)``."""
        for call in self._tree.below(frame, cst.Call):
            given = [argument.value for argument in call.args]
            if not any(is_same(each, variable) for each in given) or method_call(call) is not None:
                continue
            is_unseen = self._evaluator.definitions.definition(call.func) is None
            if is_unseen and (_DIFFERENTIATES.search(identifier(call.func)) or any(map(self._is_model, given))):
                return True
        return False

    def _is_model(self, given: cst.BaseExpression) -> bool:
        return self._evaluator.value(given).kind is Kind.MODULE

    def _is_differentiated(self, call: cst.Call, parts: list[int] | None) -> bool:
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        if any(self._tree.within(call, step) for step in self._backward.passes(frame)):
            return True
        statement = self._evaluator.flow.statement(call)
        is_over = frame is self._tree.module and self._backward.is_over_at(call)
        if not isinstance(statement, cst.Assign) or is_over:
            return False
        bound: list[cst.BaseExpression] = [target.target for target in statement.targets]
        target = bound[0]
        if len(bound) == 1 and isinstance(target, cst.Tuple) and parts is not None and statement.value is call:
            bound = [element.value for i, element in enumerate(target.elements) if i in parts]
        names = [name for target in bound for name, _ in bound_places(target)]
        return any(
            self._backward.reaches(name, frame if isinstance(name, cst.Name) else self._tree.module)
            or self.is_given_with_model(name, frame)
            for name in names
        )

    def _is_argument(self, name: cst.BaseExpression, depth: int) -> bool:
        """Whether a name is a parameter of a method, and every call in the file by its name gives it such a loss."""
        method = self._method(name)
        if method is None or not isinstance(name, cst.Name) or depth > _MOST_CALLS:
            return False
        calls = [c for c in self._tree.calls_named(method.name.value) if method_call(c) and not _is_of_base(c)]
        own = [parameter.name.value for parameter in parameters(method)][1:]
        given = [(call, bind(call.args, own).get(name.value)) for call in calls]
        return bool(given) and all(loss is not None and self._is_loss(loss, call, depth) for call, loss in given)

    def _is_loss(self, value: cst.BaseExpression, call: cst.Call, depth: int) -> bool:
        caller = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        return self._backward.differentiates(value, caller) or self._is_argument(value, depth + 1)

    def _method(self, name: cst.BaseExpression) -> cst.FunctionDef | None:
        """The method of which a name reads a parameter."""
        bindings = self._evaluator.flow.definitions(name) if isinstance(name, cst.Name) else []
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return None
        function = self._evaluator.definitions.enclosing_function(name)
        is_own = function is not None and self._tree.within(bindings[0].node, function.params)
        return function if is_own and function and self._evaluator.definitions.owner(function) is not None else None

    def _is_of_argument(self, value: cst.BaseExpression) -> bool:
        """Whether a value is ``state.loss`` of a parameter, and another method of the file differentiates just that."""
        field = value.value if isinstance(value, cst.Subscript) else value
        if not isinstance(field, cst.Attribute) or self._method(field.value) is None:
            return False
        losses = (loss for call in self._backward.passes() for start in starts(call) for loss in _leaves(start))
        if not any(is_same(loss, value) and self._is_given(loss) for loss in losses):
            return False
        targets = (target for target in self._tree.nodes(cst.AssignTarget) if _name(target.target) == _name(value))
        bound = [statement.value for t in targets if isinstance(statement := self._tree.parent(t), cst.Assign)]
        return not any(map(self._backward.detaches, bound))

    def _is_given(self, loss: cst.BaseExpression) -> bool:
        field = loss.value if isinstance(loss, cst.Subscript) else loss
        return isinstance(field, cst.Attribute) and self._method(field.value) is not None


def _iterated(loop: cst.For) -> str:
    """Return the name of what a loop goes over: ``loader`` of ``enumerate(loader)``."""
    over = loop.iter
    while isinstance(over, cst.Call) and over.args:
        over = over.args[0].value
    return identifier(over)


def is_objective(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is named for what it computes of a whole data set, and only other files call it.

    An optimizer over full batches, or one of the outer problem, differentiates ``outer_loss()``; others a term that a
    class gives which is named for losses, and does not evaluate.
    """
    name, owner = function.name.value, evaluator.definitions.owner(function)
    is_named = _OBJECTIVE.search(name) is not None
    if not is_named and owner is not None and _OF_LOSSES.search(owner.name.value):
        sets_mode = any(method_call(call, "eval") for call in evaluator.tree.below(function.body, cst.Call))
        is_named = not sets_mode and not _MEASURES.search(name)
    return is_named and not _EVALUATES.search(name) and not evaluator.callers(function)


def _leaves(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the variables whose graph a value carries on: of sums, products, means."""
    if isinstance(value, cst.BinaryOperation):
        yield from _leaves(value.left)
        if isinstance(value.operator, (cst.Add, cst.Subtract, cst.Multiply)):
            yield from _leaves(value.right)
    elif isinstance(value, cst.Call):
        method = method_call(value, *PASSES_ON)
        scaled = method_call(value, "scale")
        if method is not None:
            yield from _leaves(method.value)
        elif scaled is not None and len(value.args) == 1:
            yield from _leaves(value.args[0].value)
    elif isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)):
        yield value


def _name(place: cst.BaseExpression) -> str | None:
    """Return what an attribute, or a key, is called."""
    if isinstance(place, cst.Subscript):
        index = place.slice[0].slice
        key = literal(index.value) if isinstance(index, cst.Index) else None
        return key if isinstance(key, str) else None
    return identifier(place) if isinstance(place, cst.Attribute) else None


def _is_of_base(call: cst.Call) -> bool:
    """Whether a call hands on to the method of a base: ``super().on_batch_end(loss)``."""
    method = method_call(call)
    return method is not None and isinstance(method.value, cst.Call) and identifier(method.value.func) == "super"
