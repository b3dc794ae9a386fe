"""Samplers of diffusion models: loops over times that start from noise and feed a network with what it gave before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.scopes import targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.drawn_tokens import is_without_graph
from torchlint.semantics.evaluation.entry_points import Called, may_be_model
from torchlint.semantics.evaluation.inference_methods import PART
from torchlint.semantics.evaluation.model_classes import AUTOGRAD
from torchlint.semantics.evaluation.time_loops import TimeLoops
from torchlint.semantics.values import Value
from torchlint.syntax.calls import identifier
from torchlint.syntax.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.evaluation.inference import Inference

ModelOf = Callable[[Called], Value | None]

_SAMPLES = re.compile(r"(^|_)(sample[rs]?|sampling|denoise|denoising|generate|generation|synthesi[sz]e|inpaint)(_|$)")
# What uses a sampler once its model is trained, or while it is, to look at what it draws.
_USES = re.compile(r"(^|_)(eval|evaluate|valid|validate|test|predict|visuali[sz]e|plot|demo|main)(_|$)")
# What draws in a training step, and is trained by what comes of it.
_ACTS = re.compile(r"Policy|Actor|Agent")
_NOISE = frozenset(("torch.randn", "torch.randn_like", "torch.normal"))
_DRAWS = frozenset(("normal_", "randn_tensor"))
_MAX_DEPTH = 3
"""Through how many functions of the file a loop is followed to its network."""


class SamplingLoops:
    """Finds those which their users may call with gradients on."""

    def __init__(self, evaluator: Evaluator, backward: Backward, inference: Inference) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._times = TimeLoops(evaluator)
        self._gradient_uses = inference.gradient_uses
        self._other_passes = inference.other_passes
        self._fed_passes = inference.fed_passes
        self._leaked_results = inference.leaked_results
        self._methods = inference.methods

    def first_pass(self, function: cst.FunctionDef, model_of: ModelOf) -> cst.Call | None:
        """Return the call in such a loop that runs the network, None if gradients may be wanted or off.

        ``model_of`` tells which model calling something runs.
        """
        if _SAMPLES.search(function.name.value) is None or not self._methods.is_plain(function):
            return None
        loops = [loop for loop in self._tree.below(function.body, cst.For) if self._times.are_gone_through(loop)]
        calls = [call for loop in loops for call in self._passes(loop, function, model_of)]
        if not calls or self._is_guided(function) or not self._draws_noise(function):
            return None
        if self._methods.is_switched_off(function) or self._backward.passes(function):
            return None
        if self._other_passes.run_by(function) or self._is_fed(function, 0):
            return None
        if self._fed_passes.may_run_unseen(function) or any(map(self._leaked_results.of, calls)):
            return None
        return next((call for call in calls if not self._needs_gradients(call, model_of)), None)

    def _is_guided(self, function: cst.FunctionDef) -> bool:
        """Whether what a function draws is trained by, or follows gradients, as another function of its class does.

        A part of a model draws for the model, as the decoder of a variational autoencoder.
        """
        owner = self._evaluator.definitions.owner(function)
        if owner is not None and (_ACTS.search(owner.name.value) or PART.search(owner.name.value)):
            return True
        names = (self._evaluator.names.qualified(call.func) for call in self._tree.below(owner or function, cst.Call))
        return any((name or "").startswith(AUTOGRAD) for name in names)

    def _passes(self, loop: cst.For, function: cst.FunctionDef, model_of: ModelOf) -> Iterator[cst.Call]:
        """The calls of a network in a loop that are given the time, and what came of the pass before."""
        times = [name for name, _ in targets(loop.target)]
        counted = {name.value for name in times}
        for call in sorted(self._tree.below(loop.body, cst.Call), key=self._tree.order):
            statement = self._evaluator.flow.statement(call)
            if (
                not isinstance(statement, cst.Assign)
                or self._evaluator.definitions.enclosing_function(call) is not function
            ):
                continue
            if any(name.value in counted for name in self._tree.below(call.func, cst.Name)):
                continue  # a layer for each count
            if not self._runs_network(call, model_of, 0) or self._evaluator.gradients.disabled(call):
                continue
            given: list[cst.BaseExpression] = [argument.value for argument in call.args]
            made: list[cst.BaseExpression] = [name for t in statement.targets for name, _ in targets(t.target)]
            if self._backward.flows_into(made, given, loop) and self._backward.flows_into([*times], given, loop):
                yield call

    def _runs_network(self, call: cst.Call, model_of: ModelOf, depth: int) -> bool:
        """Whether a call runs a model with gradients on, perhaps by functions of the file."""
        if not may_be_model(call.func) or depth > _MAX_DEPTH or self._evaluator.gradients.disabled(call):
            return False
        if model_of(call.func) is not None:
            return not self._backward.frozen.holds(call.func)
        made = self._evaluator.definitions.definition(call.func)
        if not isinstance(made, cst.FunctionDef):
            return False
        return any(self._runs_network(inner, model_of, depth + 1) for inner in self._tree.below(made.body, cst.Call))

    def _draws_noise(self, function: cst.FunctionDef) -> bool:
        """Whether a function draws from a normal distribution, also by those of the file that its calls name."""
        waiting = [(function, 0)]
        for each, depth in waiting:
            if self._draws_itself(each):
                return True
            named = {identifier(call.func) for call in self._tree.below(each.body, cst.Call)}
            others = (
                [o for name in named for o in self._evaluator.definitions.functions_by_name.get(name, ())]
                if depth < _MAX_DEPTH
                else []
            )
            seen = {id(one) for one, _ in waiting}
            waiting += [(other, depth + 1) for other in others if id(other) not in seen]
        return False

    @remembered
    def _draws_itself(self, function: cst.FunctionDef) -> bool:
        calls = self._tree.below(function.body, cst.Call)
        names = ((self._evaluator.names.qualified(call.func), identifier(call.func)) for call in calls)
        return any(name in _NOISE or last in _DRAWS for name, last in names)

    def _needs_gradients(self, call: cst.Call, model_of: ModelOf) -> bool:
        """Whether gradients may be off at a call of the network, or be wanted of it."""
        gradients = self._evaluator.gradients
        if gradients.left_open(call) or gradients.wanted(call) or self._gradient_uses.of_inputs(call):
            return True
        model = model_of(call.func) if may_be_model(call.func) else None
        return model is not None and self._gradient_uses.of_model(model, call)

    def _is_fed(self, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a caller may train by what a function returns, which has a graph: it hands that out itself."""
        if self._is_detached(function):
            return False
        if depth > _MAX_DEPTH or self._fed_passes.by(function):
            return True
        return any(self._is_used_on(call, function, depth) for call in self._methods.possible_calls(function))

    def _is_detached(self, function: cst.FunctionDef) -> bool:
        returned = self._evaluator.returned(function)
        parts = returned.elements or (returned,)
        return all(map(is_without_graph, parts))

    def _is_used_on(self, call: cst.Call, function: cst.FunctionDef, depth: int) -> bool:
        caller = self._evaluator.definitions.enclosing_function(call)
        if caller is None or caller is function or self._evaluator.gradients.disabled(call):
            return False
        if self._fed_passes.by_call(call):
            return True
        if _USES.search(caller.name.value) or not self._fed_passes.hands_out(call, caller):
            return False
        return _SAMPLES.search(caller.name.value) is None or self._is_fed(caller, depth + 1)
