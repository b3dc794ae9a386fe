"""Routines that evaluate, by their names, the modes that they set, and those that call them."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.freezing import unchained
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_modes import mode_set
from torchlint.semantics.evaluation.entry_points import used_as
from torchlint.semantics.evaluation.evaluated_models import script_only_infers
from torchlint.semantics.evaluation.evaluation_loops import EvaluationLoops, holds_batch
from torchlint.semantics.evaluation.pipelines import Pipelines
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

_EVALUATES = re.compile(
    r"^_?((log|run|do|perform)_)?"
    r"(eval|evaluate|evaluation|validate|validation|val|valid|test|infer|inference|predict|prediction|greedy_decode|"
    r"beam_search|get_predictions)"
    r"(_(epoch|loop|step|model|network|net|one_epoch|fn|func|batch|set|dataset|data|loader|accuracy|loss|all|single_image))?$"
)
# What evaluates something that the name goes on to say, if it goes through batches.
_EVALUATES_IT = re.compile(r"^_?(eval|evaluate|validate|predict|infer)_[a-z]\w*$")


class Routines:
    """Tells them."""

    def __init__(
        self, evaluator: Evaluator, backward: Backward, pipelines: Pipelines, evaluation_loops: EvaluationLoops
    ) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._pipelines = pipelines
        self._evaluation_loops = evaluation_loops
        self._evaluates: dict[int, bool] = {}

    @property
    def exist(self) -> bool:
        """Whether anything in the file sets a mode, or is named for evaluation."""
        names = [function.name.value for function in self._tree.nodes(cst.FunctionDef)]
        return bool(self.modes) or any(is_named(name) or _EVALUATES_IT.match(name) for name in names)

    def evaluates(self, function: cst.FunctionDef | None) -> bool:
        """Return whether a function, or the script at its top level, evaluates or infers and does nothing else."""
        key = id(function)
        if key not in self._evaluates:
            self._evaluates[key] = False  # until it is known, for functions that call each other
            self._evaluates[key] = self._decide(function)
        return self._evaluates[key]

    def only_evaluates(self, function: cst.FunctionDef) -> bool:
        """Return whether a function evaluates, or computes without gradients, and differentiates nothing."""
        off = self._evaluator.gradients.function_disabled(function)
        return (off or self.evaluates(function)) and not self._backward.passes(function)

    def _decide(self, function: cst.FunctionDef | None) -> bool:
        if function is None:
            return script_only_infers(self._evaluator, self._backward)
        modes = self.set_by(function) or self._set_by_decorators(function)
        if modes[:1] == ["eval"]:
            return "train" not in modes or not (self._speaks_of_optimizers(function) or self._backward.passes(function))
        named = is_named(function.name.value) and not function.name.value.startswith("test_")
        if not named and not modes:
            helps = self._evaluates_it(function) or self._helps_to_evaluate(function)
            return helps or self._pipelines.infers(function)
        if not named or "train" in modes[:1]:
            return False
        called = bool(self._evaluator.callers(function)) or self._loops_over_batches(function)
        return called or self.sets_something(function) or self._is_of_trainer(function)

    def _is_of_trainer(self, function: cst.FunctionDef) -> bool:
        """Whether the trainer of Hugging Face calls a method for each batch, which switches gradients off itself."""
        owner = self._evaluator.definitions.owner(function)
        is_one = function.name.value == "prediction_step" and owner is not None
        return is_one and owner is not None and self._evaluator.definitions.is_trainer(owner)

    def _evaluates_it(self, function: cst.FunctionDef) -> bool:
        """Whether a function goes through batches to evaluate what its name goes on to say."""
        named = _EVALUATES_IT.match(function.name.value) is not None
        return named and self._loops_over_batches(function) and not self._speaks_of_optimizers(function)

    def _helps_to_evaluate(self, function: cst.FunctionDef) -> bool:
        """Whether all that calls a function are routines that evaluate, or hand it a model in evaluation mode."""
        calls = self._evaluator.callers(function)
        helps = bool(calls) and all(self._helps(call) or self._is_run_after_eval(call, function) for call in calls)
        return helps and not self._speaks_of_optimizers(function)

    def _helps(self, call: cst.Call) -> bool:
        if self._evaluation_loops.hands_over_evaluated(call):
            return True
        caller = self._evaluator.definitions.enclosing_function(call)
        if caller is None or not (id(caller) in self.modes or self._is_given_batch(call, caller)):
            return False
        if not self.only_evaluates(caller) or self._trains_again(call, caller):
            return False
        return not self._speaks_of_optimizers(caller)

    def _trains_again(self, call: cst.Call, caller: cst.FunctionDef) -> bool:
        """Whether a routine that evaluates has set the model to training before a call: ``model.train()``."""
        before = [m for m in self.modes.get(id(caller), ()) if self._tree.order(m) < self._tree.order(call)]
        last = [m for m in before if self._is_of_model(m)][-1:]
        return bool(last) and mode_set(last[0]) == "train"

    def _is_run_after_eval(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a script has set the model that a function feeds with batches to evaluation before it calls it."""
        if self._evaluator.definitions.enclosing_function(call) is not None or not self._loops_over_batches(function):
            return False
        run = [each.func for each in self._tree.below(function.body, cst.Call) if isinstance(each.func, cst.Name)]
        place = self._tree.order(call)
        before = [m for m in self.modes.get(id(None), ()) if self._tree.order(m) < place and self._is_of_model(m)]
        last = [m for m in before if isinstance(m.func, cst.Attribute) and any(is_same(m.func.value, f) for f in run)]
        return bool(last) and mode_set(last[-1]) == "eval"

    def _is_given_batch(self, call: cst.Call, caller: cst.FunctionDef) -> bool:
        """Whether a call stands in a loop of its function over a loader."""
        loop = self._tree.enclosing(call, cst.For)
        return loop is not None and self._tree.within(loop, caller) and holds_batch(self._evaluator, loop)

    def _is_of_a_part(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a call freezes a part of its object under a condition: ``if self.frozen: self.encoder.eval()``."""
        condition = self._tree.enclosing(call, cst.If)
        part = method_call(call, "eval", "train")
        is_part = part is not None and isinstance(part.value, cst.Attribute)
        return is_part and condition is not None and self._tree.within(condition, function)

    def _speaks_of_optimizers(self, function: cst.FunctionDef) -> bool:
        names = (identifier(n) for n in self._tree.descendants(function) if isinstance(n, (cst.Name, cst.Attribute)))
        return any("optim" in name.lower() for name in names)

    @cached_property
    def modes(self) -> dict[int, list[cst.Call]]:
        """The calls of ``eval()`` and ``train()`` by the function that they stand in."""
        found: dict[int, list[cst.Call]] = {}
        for call in self._tree.nodes(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("eval", "train"):
                found.setdefault(id(self._evaluator.definitions.enclosing_function(call)), []).append(call)
        return found

    def sets_something(self, function: cst.FunctionDef) -> bool:
        """Return whether ``eval()`` is called in a function, on whatever: ``getattr(self, name).eval()``."""
        return any(mode_set(call) == "eval" for call in self.modes.get(id(function), ()))

    def sets(self, module: cst.BaseExpression, function: cst.FunctionDef | None) -> bool:
        """Return whether ``eval()`` is called in a routine on this very variable, or on what it is a part of."""
        here = self.modes.get(id(function))
        if here is None:
            return False
        calls = (call.func for call in here if mode_set(call) == "eval")
        evaluated = [unchained(method.value) for method in calls if isinstance(method, cst.Attribute)]
        while not any(is_same(one, module) or self._goes_over(one, module) for one in evaluated):
            if not isinstance(module, cst.Attribute):
                return False
            module = module.value
        return True

    def _goes_over(self, variable: cst.BaseExpression, module: cst.BaseExpression) -> bool:
        """Whether a loop binds a variable to each model of the dictionary of which one is an item."""
        if not isinstance(module, cst.Subscript) or not isinstance(variable, cst.Name):
            return False
        bindings = self._evaluator.flow.definitions(variable)
        over = [method_call(binding.value, "values", "items") for binding in bindings]
        return bool(over) and all(values is not None and is_same(values.value, module.value) for values in over)

    def _loops_over_batches(self, function: cst.FunctionDef) -> bool:
        """Whether a routine goes through a loader, so that nobody else calls it for each batch."""
        return any(
            self._evaluator.definitions.enclosing_function(loop) is function and holds_batch(self._evaluator, loop)
            for loop in self._tree.nodes(cst.For)
        )

    def set_by(self, function: cst.FunctionDef | None) -> list[str]:
        """Return the modes into which a routine puts models, in document order."""
        calls = (call for call in self.modes.get(id(function), ()) if self._is_of_model(call))
        return [mode_set(call) for call in calls if function is None or not self._is_of_a_part(call, function)]

    def _set_by_decorators(self, function: cst.FunctionDef) -> list[str]:
        """The modes that decorators of the file put models into around a function: ``@evaluating``."""
        written = (self._evaluator.definitions.definition(each.decorator) for each in function.decorators)
        wrappers = (w for made in written if made is not None for w in self._tree.below(made.body, cst.FunctionDef))
        return [mode for wrapper in wrappers for mode in self.set_by(wrapper)]

    def _is_of_model(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and used_as(call.func.value, self._evaluator).kind is Kind.MODULE


def is_named(name: str) -> bool:
    """Return whether a function is named for evaluating."""
    return _EVALUATES.match(name) is not None
