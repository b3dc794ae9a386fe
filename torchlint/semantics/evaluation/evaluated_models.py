"""Variables that hold a model which was set to evaluate where it was made, in a file that trains nothing."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.freezing import unchained
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_modes import mode_set
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.process.testing import tests
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.syntax.calls import element_at, identifier, is_none, method_call
from torchlint.syntax.statements import is_main_guard

_MAX_DEPTH = 6
"""Through how many functions and variables of the file a model is followed."""


class EvaluatedModels:
    """Follows what a script calls to the place where its model is made: ``model = load(path)``."""

    def __init__(self, evaluator: Evaluator, backward: Backward, training_code: TrainingCode) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._training_code = training_code

    @cached_property
    def exist(self) -> bool:
        """Whether a model of the file is set to evaluate, and none is trained in it as far as can be seen."""
        modes = {mode_set(call) for call in self._tree.nodes(cst.Call)}
        if "eval" not in modes or "train" in modes or tests(self._evaluator.scopes):
            return False
        computes_gradients = self._backward.passes() or self._backward.framework_losses()
        return not computes_gradients and not self._training_code.may_train(self._tree.module)

    def holds(self, model: cst.BaseExpression) -> bool:
        """Return whether a variable holds such a model, or an expression is a part of one: ``model.encoder``."""
        held: cst.Attribute | None = None
        while isinstance(model, cst.Attribute):
            held, model = model, model.value
        if not isinstance(model, cst.Name) or not self.exist:
            return False
        owner = self._evaluator.definitions.receiver(model) if held is not None else None
        if held is None or owner is None:
            return self._is_evaluated(model, 0)
        bound = self._evaluator.definitions.attribute(owner, held.attr.value) if not owner.bases else []
        return bool(bound) and all(self._makes(each.value, each.path, 0) for each in bound)

    def makes(self, value: cst.BaseExpression | None, path: tuple[int, ...] = ()) -> bool:
        """Return whether an expression, or that part of what it gives, is a model that is set to evaluate."""
        return self.exist and self._makes(value, path, 0)

    def _is_evaluated(self, name: cst.Name, depth: int) -> bool:
        bindings = [b for b in self._evaluator.flow.definitions(name) if b.value is None or not is_none(b.value)]
        return bool(bindings) and all(self._binds(binding, depth) for binding in bindings)

    def _binds(self, binding: Binding, depth: int) -> bool:
        passed = passed_for(binding, self._evaluator)
        if passed:
            return all(self._makes(each, (), depth) for each in passed)
        if binding.kind is not BindingKind.ASSIGNMENT:
            return False
        return self._is_set_where_bound(binding) or self._makes(binding.value, binding.path, depth)

    def _is_set_where_bound(self, binding: Binding) -> bool:
        """Whether ``eval()`` is called on a variable in the function, or at the top level, that binds it."""
        function = self._evaluator.definitions.enclosing_function(binding.node)
        return any(
            model.value == binding.name
            and self._evaluator.definitions.enclosing_function(model) is function
            and self._tree.order(binding.node) < self._tree.order(model)
            and any(other is binding for other in self._evaluator.scopes.bindings(model))
            for model in self._evaluated
        )

    @cached_property
    def _evaluated(self) -> list[cst.Name]:
        """The variables on which ``eval()`` is called, under no condition."""
        calls = [call for call in self._tree.nodes(cst.Call) if mode_set(call) == "eval"]
        models = [unchained(call) for call in calls if not self._is_conditional(call)]
        return [model for model in models if isinstance(model, cst.Name)]

    def _is_conditional(self, call: cst.Call) -> bool:
        test = self._tree.enclosing(call, cst.If, cst.FunctionDef)
        return isinstance(test, cst.If) and not is_main_guard(test)

    def _makes(self, value: cst.BaseExpression | None, path: tuple[int, ...], depth: int) -> bool:
        if depth >= _MAX_DEPTH or value is None:
            return False
        part = element_at(value, path)
        if part is not None:
            value, path = part, ()
        if isinstance(value, cst.Name):
            return not path and self._is_evaluated(value, depth + 1)
        while isinstance(value, cst.Call):
            function = self._evaluator.definitions.definition(value.func)
            if isinstance(function, cst.FunctionDef):
                results = self._evaluator.definitions.results(function)
                return bool(results) and all(self._makes(result, path, depth + 1) for result in results)
            if mode_set(value) == "eval":
                return not path
            method = method_call(value)
            value = method.value if method is not None and not path else None
        return False


def script_only_infers(evaluator: Evaluator, backward: Backward) -> bool:
    """Return whether a file without training loads weights and runs the model at its top level.

    One that makes an optimizer trains, be it by functions of other files.
    """
    if backward.passes():
        return False
    made = (evaluator.names.qualified(call.func) or "" for call in evaluator.tree.nodes(cst.Call))
    if any(name.startswith("torch.optim.") for name in made):
        return False
    return any(
        evaluator.definitions.enclosing_function(call) is None
        and (evaluator.names.qualified(call.func) == "torch.load" or method_call(call, "load_state_dict") is not None)
        for call in evaluator.tree.nodes(cst.Call)
        if identifier(call.func) in ("load", "load_state_dict")
    )
