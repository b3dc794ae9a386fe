"""Functions of a file by which routines that train and that evaluate run a model: ``loss = self.step(batch)``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_gradients import disabled_for
from torchlint.semantics.evaluation.entry_points import used_as
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.evaluation.hidden_gradients import HiddenGradients
from torchlint.semantics.evaluation.own_care import cares_for_itself, model_run_by
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.semantics.values import Kind

_Variable = cst.Name | cst.Attribute

_MAX_DEPTH = 3
"""Through how many functions of the file a model is followed."""


class SharedSteps:
    """Tells which model a function of the file runs for its callers, with gradients on."""

    def __init__(
        self,
        evaluator: Evaluator,
        backward: Backward,
        training_code: TrainingCode,
        gradient_uses: GradientUses,
    ) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._training_code = training_code
        self._gradient_uses = gradient_uses
        self._hidden = HiddenGradients(evaluator, gradient_uses)
        self._cared: dict[int, bool] = {}

    def function(self, call: cst.Call) -> cst.FunctionDef | None:
        """Return the function of the file that a call runs, if it may be such a step; None for methods of models."""
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef) or function.asynchronous is not None:
            return None
        owner = self._evaluator.definitions.owner(function)
        is_of_model = owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE
        return None if is_of_model or self._evaluator.definitions.yielded(function) else function

    def trains_by(self, step: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether a routine that computes gradients calls a function, or it does so itself for other calls."""
        if self._backward.leaves_passes_out(call, step):
            return True
        routines = map(self._evaluator.definitions.enclosing_function, self._evaluator.callers(step))
        return any(self._backward.passes(routine or self._tree.module) for routine in routines)

    def is_differentiated(self, call: cst.Call, step: cst.FunctionDef) -> bool:
        """Return whether the loop around a call of a step, or the routine, computes gradients, also out of sight."""
        function = self._evaluator.definitions.enclosing_function(call)
        loop = self._tree.enclosing(call, cst.For, cst.FunctionDef)
        trains = function is None or self._backward.passes(function) or self._backward.leaves_passes_out(call, step)
        around = loop if trains else function
        calls = self._tree.below(around, cst.Call) if around is not None else []
        return self._hidden.below(each for each in calls if each is not call)

    def models(self, call: cst.Call, depth: int = 0) -> Iterator[_Variable]:
        """Yield the modules that a call of a function of the file runs, as its caller sees them.

        A function that trains, switches gradients off, or differentiates for itself is no such step.
        """
        function = self.function(call)
        if function is None or depth >= _MAX_DEPTH or self._cares(function, call):
            return
        for inner in self._tree.below(function.body, cst.Call):
            is_own = self._evaluator.definitions.enclosing_function(inner) is function
            if is_own and not (self._decides(inner) or self._is_told(inner, function, call)):
                seen = (self._as_seen(found, function, call) for found in self._run(inner, depth))
                yield from (model for model in seen if model is not None)

    def _run(self, call: cst.Call, depth: int) -> Iterator[_Variable]:
        """The modules that a call in a step runs, itself or by another function of the file."""
        called = model_run_by(call, self._evaluator)
        if self.function(call) is not None:
            yield from self.models(call, depth + 1)
        elif isinstance(called, (cst.Name, cst.Attribute)) and used_as(called, self._evaluator).kind is Kind.MODULE:
            yield called

    def _cares(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a function trains for a call, or differentiates, or is the one that decides about gradients."""
        if self._backward.leaves_passes_out(call, function):
            return self._decide(function, call)
        if id(function) not in self._cared:
            self._cared[id(function)] = self._decide(function, call)
        return self._cared[id(function)]

    def _decide(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        name = function.name.value
        same = (
            [f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == name] if self._is_method(function) else []
        )
        for one in {id(f): f for f in (function, *same)}.values():  # a class may override what another one calls
            calls = self._tree.below(one.body, cst.Call)
            if self._backward.leaves_passes_out(call, one):
                calls = [inner for inner in calls if not self._evaluator.told.leaves_out(inner, one, call)]
            if self._evaluator.gradients.function_disabled(one) or self._hidden.below(calls):
                return True
            if any(self._training_code.may_take_step(c) or self._gradient_uses.may_differentiate(c) for c in calls):
                return True
        return False

    def _is_method(self, function: cst.FunctionDef) -> bool:
        return self._evaluator.definitions.owner(function) is not None

    def _decides(self, call: cst.Call) -> bool:
        """Whether a function decides about the gradients of a call of a model in it."""
        gradients = self._evaluator.gradients
        off = gradients.disabled(call) or gradients.left_open(call)
        off = off or self._gradient_uses.of_inputs(call)
        return off or gradients.wanted(call) or cares_for_itself(call, self._evaluator)

    def _is_told(self, inner: cst.Call, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Whether a call of a step tells it to leave out a call of a model, or to run that without gradients."""
        is_left_out = self._evaluator.told.leaves_out(inner, function, call)
        return is_left_out or disabled_for(inner, function, call, self._evaluator)

    def _as_seen(self, model: _Variable, function: cst.FunctionDef, call: cst.Call) -> _Variable | None:
        """The variable of the caller that holds a model: an argument, or the same attribute of the same object."""
        if isinstance(model, cst.Attribute):
            held = model.value
            is_own = isinstance(held, cst.Name) and self._evaluator.definitions.receiver(held) is not None
            return model if is_own and isinstance(call.func, cst.Attribute) else None
        param = next((p for p in parameters(function) if p.name.value == model.value), None)
        if param is None:
            return model if self._is_of_file(model) else None
        given = argument_for(function, param, call, self._evaluator.definitions)
        return given if isinstance(given, (cst.Name, cst.Attribute)) else None

    def _is_of_file(self, name: cst.Name) -> bool:
        """Whether a variable is bound at the top level, where all functions see the same."""
        bindings = self._evaluator.scopes.bindings(name)
        return all(self._evaluator.definitions.enclosing_function(b.node) is None for b in bindings)
