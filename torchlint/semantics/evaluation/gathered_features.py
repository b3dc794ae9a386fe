"""Features of a whole data set: what a model in evaluation mode makes of each batch of a loader, kept for later."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import BindingKind, targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.evaluation_loops import holds_batch
from torchlint.semantics.evaluation.routines import Routines
from torchlint.semantics.tables.container_methods import PUTS_INTO
from torchlint.semantics.values import Origin
from torchlint.syntax.calls import is_none, method_call


class GatheredFeatures:
    """Tells where a function gathers them, through which nobody goes back: their graph is that of all batches."""

    def __init__(self, evaluator: Evaluator, backward: Backward, routines: Routines) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._routines = routines

    def is_apart(self, call: cst.Call, model: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a function evaluates a model on its own, though it is a method of another, as a metric is.

        It is given the model that it sets to evaluate, or runs it on all batches of a loader.
        """
        if not isinstance(model, cst.Name) or self._evaluator.definitions.receiver(model) is not None:
            return False
        if not self._routines.sets(model, function):
            return False
        if any(binding.kind is BindingKind.PARAMETER for binding in self._evaluator.flow.definitions(model)):
            return True
        return self._loop(call) is not None

    def hold(self, call: cst.Call, model: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a function gathers what a call of a model gives for each batch of a loader, after ``eval()``.

        A sum of losses may be differentiated, as of a whole data set by an optimizer of second order. So may features
        in a file that takes backward passes, which may call the function by another name.
        """
        if self._backward.passes():
            return False
        loop = self._loop(call) if self._routines.sets(model, function) else None
        if any(map(self._reduces, self._evaluator.definitions.results(function))):
            return False
        return loop is not None and any(self._is_of(value, call, loop) for value in self._gathered(loop))

    def _reduces(self, result: cst.BaseExpression) -> bool:
        """Whether a function gives one number of all that it has gathered: ``torch.cat(losses).mean()``."""
        if not isinstance(result, cst.Call) or method_call(result, "sum", "mean") is None:
            return False
        is_function = self._evaluator.names.qualified(result.func) is not None  # `torch.mean(x)`
        return all(is_none(argument.value) for argument in result.args[is_function:])

    def _loop(self, call: cst.Call) -> cst.For | None:
        """The loop over a loader around a call in its function."""
        for ancestor in self._tree.ancestors(call):
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)):
                return None
            if isinstance(ancestor, cst.For) and holds_batch(self._evaluator, ancestor):
                return ancestor
        return None

    def _gathered(self, loop: cst.For) -> list[cst.BaseExpression]:
        """What the passes of a loop put into a container, or a part of a tensor, from before it."""
        found: list[cst.BaseExpression] = []
        for call in self._tree.below(loop.body, cst.Call):
            method = method_call(call, *PUTS_INTO)
            if method is not None and self._is_from_before(method.value, loop):
                found += [argument.value for argument in call.args]
        for statement in self._tree.below(loop.body, cst.Assign):
            places = (target.target for target in statement.targets)
            if any(isinstance(place, cst.Subscript) and self._is_from_before(place.value, loop) for place in places):
                found.append(statement.value)
        return found

    def _is_from_before(self, container: cst.BaseExpression, loop: cst.For) -> bool:
        while isinstance(container, cst.Subscript):
            container = container.value
        bindings = self._evaluator.flow.definitions(container) if isinstance(container, cst.Name) else []
        return bool(bindings) and not any(self._tree.within(binding.node, loop) for binding in bindings)

    def _is_of(self, value: cst.BaseExpression, call: cst.Call, loop: cst.For) -> bool:
        """Whether a value is computed of what a call gives, with its graph, and is no loss."""
        if self._evaluator.value(value).origin is Origin.LOSS or self._backward.detaches(value):
            return False
        if value is call or self._tree.within(call, value):
            return True
        statement = self._evaluator.flow.statement(call)
        places = statement.targets if isinstance(statement, cst.Assign) else ()
        held: list[cst.BaseExpression] = [name for place in places for name, _ in targets(place.target)]
        return self._backward.flows_into(held, [value], loop)
