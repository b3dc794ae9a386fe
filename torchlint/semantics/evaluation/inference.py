"""Forward passes whose results nobody differentiates."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.handed import is_objective
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.dataflow.kept_results import KeptResults
from torchlint.semantics.evaluate import hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.abstract_steps import AbstractSteps
from torchlint.semantics.evaluation.entry_points import (
    Called,
    belongs_to_module,
    lacks_parameters,
    may_be_model,
    may_have_parameters,
    method_behind,
    only_filters,
    run_by_method,
    used_as,
    works_on_texts,
)
from torchlint.semantics.evaluation.evaluated_models import EvaluatedModels, script_only_infers
from torchlint.semantics.evaluation.evaluation_loops import EvaluationLoops
from torchlint.semantics.evaluation.fates import Fates
from torchlint.semantics.evaluation.fed_passes import FedPasses
from torchlint.semantics.evaluation.gathered_features import GatheredFeatures
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.evaluation.handed_out import HandedOut
from torchlint.semantics.evaluation.handed_results import HandedResults
from torchlint.semantics.evaluation.inference_methods import InferenceMethods
from torchlint.semantics.evaluation.leaked_results import LeakedResults
from torchlint.semantics.evaluation.other_passes import OtherPasses
from torchlint.semantics.evaluation.own_care import (
    cares_for_itself,
    is_dry_run,
    model_run_by,
    runs_without_graph,
    switches_off_a_part,
)
from torchlint.semantics.evaluation.pipelines import Pipelines
from torchlint.semantics.evaluation.predictors import Predictors
from torchlint.semantics.evaluation.routines import Routines, is_named
from torchlint.semantics.evaluation.sampling_loops import SamplingLoops
from torchlint.semantics.evaluation.shared_steps import SharedSteps
from torchlint.semantics.evaluation.trained_calls import TrainedCalls, only_collects
from torchlint.semantics.evaluation.turns import Turns
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import LOSS_CLASSES
from torchlint.semantics.training.phases import in_evaluation
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.semantics.values import Graph, Kind, Origin, Value
from torchlint.syntax.calls import identifier
from torchlint.syntax.remembered import remembered

_CLASS = re.compile(r"^_?[A-Z][a-z]\w+$")
# Methods that switch gradients off themselves where a library defines them.
_SELF_CONTAINED = frozenset(("sample", "generate", "predict"))


class InferenceCall(NamedTuple):
    """A call of a model in a routine that evaluates."""

    function: cst.FunctionDef | None
    """None at the top level of a script."""

    evidence: Evidence
    trains: bool
    frozen: bool
    is_generator: bool
    returns_host_values: bool
    """Whether the function hands out nothing that could still be backpropagated."""

    switches_off: bool
    """Whether what is called computes without gradients, whoever calls it."""

    needs_gradients: bool
    """Whether the routine or the model asks for gradients of tensors."""

    is_part: bool
    """Whether only a part of the routine evaluates, and the rest trains."""

    in_loop: bool
    """Whether that part is a loop."""

    is_dry_run: bool
    """Whether the model is only tried out: once, and nothing looks at the result."""

    turn: cst.BaseExpression | None = None
    """The test by which a routine that trains or evaluates as it is told tells what to do."""

    leaves: bool = False
    """Whether a result is put with its graph into what others hold, where somebody may want it."""


class Inference:
    """Finds the calls."""

    def __init__(self, evaluator: Evaluator, backward: Backward, training_code: TrainingCode) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._evaluation_loops = EvaluationLoops(evaluator, backward)
        self._evaluated_models = EvaluatedModels(evaluator, backward, training_code)
        self._predictors = Predictors(evaluator, backward, self._evaluated_models)
        self.frozen = backward.frozen
        self.trained_calls = TrainedCalls(evaluator, backward)
        self.gradient_uses = GradientUses(evaluator)
        self._fates = Fates(evaluator)
        self.leaked_results = LeakedResults(evaluator, backward)
        self.handed_results = HandedResults(evaluator, backward, self._fates)
        self.other_passes = OtherPasses(evaluator, training_code, self.gradient_uses)
        self._abstract_steps = AbstractSteps(evaluator, backward)
        self._pipelines = Pipelines(evaluator, backward)
        self._routines = Routines(evaluator, backward, self._pipelines, self._evaluation_loops)
        self._gathered_features = GatheredFeatures(evaluator, backward, self._routines)
        self._shared_steps = SharedSteps(evaluator, backward, training_code, self.gradient_uses)
        self.kept_results = KeptResults(evaluator)
        self.fed_passes = FedPasses(evaluator, backward)
        self.handed_out = HandedOut(evaluator, self.fed_passes)
        self._turns = Turns(evaluator, training_code, self.gradient_uses)
        self.methods = InferenceMethods(evaluator, backward, self.gradient_uses)
        self._sampling_loops = SamplingLoops(evaluator, backward, self)

    @remembered
    def call(self, call: cst.Call) -> InferenceCall | None:
        """Return the inference call that a call is: the outermost forward pass in a routine that evaluates."""
        if not may_be_model(call.func) or not self.speaks_of_evaluation:
            return None
        called = model_run_by(call, self._evaluator)
        if not may_be_model(called) or self._evaluator.names.qualified(called) is not None:
            return None  # most calls are of what was imported
        step = self.run_by_step(call)
        called = step or called
        function = self._evaluator.definitions.enclosing_function(call)
        frame: cst.CSTNode = function if function is not None else self._tree.module
        whole = self.routine_evaluates(function) or self._is_only_evaluated(called, function)
        is_followed = not whole and self._evaluated_models.holds(called)
        whole = whole or is_followed or self._script_evaluates(called, function)
        trains_too = not whole or bool(self._backward.passes(frame))
        in_loop = trains_too and self._evaluation_loops.evaluates(call, called, frame)
        may_pause = trains_too and self._routines.sets(called, function)
        is_part = in_loop or (may_pause and self._evaluation_loops.is_set_apart(call, called, frame))
        turn = self._turns.test(call, frame) if not whole and not is_part else None
        is_part = is_part or turn is not None
        if not (whole or is_part) or self._is_kept(call, step or turn, function):
            return None
        if function is not None and self._is_of_other(function, call, called, whole):
            return None
        denoises = function is not None and self._pipelines.infers(function)
        module = self.called_model(called, weak=denoises)
        if module is None and whole:
            module = self._abstract_steps.model_run_by(call)
        if module is None or cares_for_itself(call, self._evaluator):
            return None
        if module.evidence < Evidence.INFERRED and not call.args:
            return None  # `model.fuse_model()` is called so, but a model is given something
        is_seen = function is not None or isinstance(called, cst.Subscript)
        weak = module.evidence < Evidence.INFERRED and is_seen and not denoises
        if weak and not (is_followed or self._is_set_to_evaluate(called, function) or self.takes_batch(call)):
            return None
        return InferenceCall(
            function,
            Evidence.INFERRED,
            self._is_trained_by(call, function, is_part=is_part, by_turns=turn is not None),
            self.is_frozen(called),
            function is not None and self._is_generator(function, call),
            function is None
            or is_part
            or denoises
            or (self._gathered_features.hold(call, called, function) and not self.methods.is_switched_off(function))
            or self.handed_out.are_host_values(
                function, call, alone=is_followed, is_trained=self.is_trained_method(call)
            )
            or self._evaluator.is_engine_step(function),
            self.switches_off(called, module) or self.handed_results.is_array(call),
            self._asks_for_gradients(call, module) or (turn is None and self.handed_results.need_graph(call)),
            is_part,
            in_loop,
            is_dry_run(call, self._evaluator),
            turn,
            self.leaked_results.stay_out_of_sight(call),
        )

    def _is_trained_by(
        self, call: cst.Call, function: cst.FunctionDef | None, *, is_part: bool, by_turns: bool
    ) -> bool:
        """Whether the routine around a call, or somebody to whom it gives the result, goes back through it."""
        frame: cst.CSTNode = function if function is not None else self._tree.module
        fed = self.fed_passes
        if not is_part and self._backward.passes(frame):
            return True
        if (not is_part or by_turns) and fed.by(function):
            return True
        if fed.stored(call, function) or self._evaluation_loops.leaves_step_to_other(call):
            return True
        if function is not None and is_objective(function, self._evaluator):
            return True
        collects = is_part and not by_turns and fed.collected(call, frame)
        return collects or self.leaked_results.are_differentiated(call)

    def wants_graph(self, call: cst.Call, module: Value) -> bool:
        """Return whether the routine around a call needs gradients: of its inputs, of the model, of what it gives."""
        return self._asks_for_gradients(call, module) or self.handed_results.need_graph(call)

    def _asks_for_gradients(self, call: cst.Call, module: Value) -> bool:
        return self.gradient_uses.of_inputs(call) or self.gradient_uses.of_model(module, call)

    def _is_kept(self, call: cst.Call, shared: cst.CSTNode | None, function: cst.FunctionDef | None) -> bool:
        """Whether what a step, or a method of a model, gives may be backpropagated later, by somebody else."""
        is_asked = shared is not None or (function is not None and belongs_to_module(function, self._evaluator))
        is_asked &= self._evaluator.value(call).kind not in (Kind.NDARRAY, Kind.NUMBER)
        return is_asked and bool(self._backward.passes()) and self.kept_results.is_kept(call)

    def run_by_step(self, call: cst.Call) -> cst.Name | cst.Attribute | None:
        """Return the model that a function of the file runs, which is not reported itself: others train by it."""
        step = self._shared_steps.function(call)
        if (
            step is None
            or self._turns.exist(step)
            or not self._shared_steps.trains_by(step, call)
            or (self.routine_evaluates(step) and not self.fed_passes.by(step))
        ):
            return None
        if self._shared_steps.is_differentiated(call, step):
            return None
        return next((m for m in self._shared_steps.models(call) if self.called_model(m) is not None), None)

    @remembered
    def first_pass(self, function: cst.FunctionDef) -> cst.Call | None:
        """Return the first pass of a network in what its users may call with gradients on, though it only infers."""
        call = self.methods.first_pass(function) or self._sampling_loops.first_pass(function, self.called_model)
        found = self.call(call) if call is not None else None
        return call if found is None or not found.returns_host_values else None

    def is_reported_within(self, call: cst.Call) -> bool:
        """Return whether a call runs a function of which the first pass is reported, whoever calls it."""
        return id(call) in self._calls_of_samplers

    @cached_property
    def _calls_of_samplers(self) -> frozenset[int]:
        samplers = [f for f in self._tree.nodes(cst.FunctionDef) if self.first_pass(f) is not None]
        return frozenset(id(call) for sampler in samplers for call in self._evaluator.callers(sampler))

    @cached_property
    def speaks_of_evaluation(self) -> bool:
        """Whether anything in the file can make a routine evaluate: asked before each of its calls is looked at."""
        if self._routines.exist or self._pipelines.exist:
            return True
        return self._evaluation_loops.over_evaluation_data or script_only_infers(self._evaluator, self._backward)

    @cached_property
    def occurs(self) -> bool:
        """Whether there is any inference call in the file."""
        return self.speaks_of_evaluation and any(self.call(call) is not None for call in self._tree.nodes(cst.Call))

    def switches_off(self, called: Called, module: Value) -> bool:
        """Return whether the file shows that what a call runs computes without gradients: its method, or a wrapper."""
        if self._evaluator.gradients.wraps_forward(called):
            return True
        method = method_behind(called, module, self._evaluator)
        if method is None:
            return False
        if method.name.value == "forward" and runs_without_graph(method, self._evaluator):
            return True
        returned = self._evaluator.returned(method)
        detached = returned.is_tensor and returned.graph is Graph.DETACHED
        cares = method.name.value != "forward" and switches_off_a_part(method, self._evaluator)
        return detached or cares or self._evaluator.gradients.function_disabled(method)

    def called_model(self, function: Called, *, weak: bool = False) -> Value | None:
        """Return the model whose forward pass calling this runs, None for losses and layers without parameters.

        ``weak``: it may be known by its name only where a method of it is called, too: ``vae.decode``.
        """
        value, name = used_as(function, self._evaluator), identifier(function)
        is_known = value.kind is Kind.MODULE and value.evidence >= Evidence.INFERRED  # `self.Encoder`
        is_class = not is_known and _CLASS.match(name) is not None
        if is_class or self._evaluator.names.qualified(function) is not None:
            return None
        trained = self._trained_by(function)
        if trained is not None:
            return trained
        if hints.named(name).origin is Origin.LOSS:
            return None
        run = run_by_method(function, self._evaluator) if value.kind is not Kind.MODULE else None
        if run is not None:
            behind = method_behind(function, run, self._evaluator)
            unseen = identifier(function) in _SELF_CONTAINED and behind is None
            if unseen or (run.evidence < Evidence.INFERRED and not weak):
                return None
            value = run
        if value.kind is not Kind.MODULE or value.origin is Origin.LOSS or value.name in LOSS_CLASSES:
            return None
        is_filter = lacks_parameters(value, self._evaluator) or only_filters(function, self._evaluator)
        is_filter = is_filter or works_on_texts(function, self._evaluator)
        return value if may_have_parameters(value) and not is_filter else None

    def _trained_by(self, called: Called) -> Value | None:
        """The model of which a method is called by which the file trains it."""
        owner = used_as(called.value, self._evaluator) if isinstance(called, cst.Attribute) else None
        if owner is None or owner.kind is not Kind.MODULE or owner.origin is Origin.LOSS:
            return None
        if self._evaluator.value(called).kind is Kind.MODULE or not self.trained_calls.include(called):
            return None
        behind = method_behind(called, owner, self._evaluator)
        return owner if behind is None or not only_collects(behind, self._evaluator) else None

    def is_trained_method(self, call: cst.Call) -> bool:
        """Return whether a call is of a method of a model by which the file trains that."""
        return may_be_model(call.func) and self._trained_by(call.func) is not None

    def is_frozen(self, called: Called) -> bool:
        """Return whether the file excludes what a call runs from gradients, if only for a while."""
        owner = called.value if isinstance(called, cst.Attribute) and self._trained_by(called) is not None else None
        is_owner_frozen = isinstance(owner, (cst.Name, cst.Attribute)) and self.frozen.holds(owner)
        return is_owner_frozen or self.frozen.holds(called)

    def _is_reported_by_caller(self, method: cst.FunctionDef) -> bool:
        """Whether a method of a model is called by an evaluation of the file, where the whole of it is reported."""
        calls = self._evaluator.callers(method) if belongs_to_module(method, self._evaluator) else []
        within = [call for call in calls if self._evaluator.definitions.enclosing_function(call) is not None]
        return any(not self.handed_out.is_in_module(call) and self.call(call) is not None for call in within)

    def _is_of_other(self, function: cst.FunctionDef, call: cst.Call, called: Called, whole: bool) -> bool:
        """Whether a function only runs within a forward pass, or within what is reported itself."""
        if self._is_reported_by_caller(function):
            return True
        return self._is_part_of_forward(function) and not (
            whole and self._gathered_features.is_apart(call, called, function)
        )

    def _is_part_of_forward(self, function: cst.FunctionDef) -> bool:
        owner = self._evaluator.definitions.owner(function)
        if owner is None or self._evaluator.definitions.class_kind(owner) is not Kind.MODULE:
            return False
        if not is_named(function.name.value):
            return True
        if self._routines.sets_something(function) and len(parameters(function)) == 1:
            return False  # it takes its input from its object, as no part of a model does
        return all(map(self.handed_out.is_in_module, self._evaluator.callers(function)))

    def routine_evaluates(self, function: cst.FunctionDef | None) -> bool:
        """Return whether a function, or the script at its top level, evaluates or infers and does nothing else."""
        return self._routines.evaluates(function)

    def only_evaluates(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs in evaluation only: by its function, or by a test of the stage around it."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is not None and self._routines.only_evaluates(function):
            return True
        return in_evaluation(node, function or self._tree.module, self._tree)

    def _is_only_evaluated(self, called: cst.BaseExpression, function: cst.FunctionDef | None) -> bool:
        """Whether a method calls a model that its object holds to evaluate it."""
        return function is not None and self._predictors.evaluates(called, function)

    def _is_set_to_evaluate(self, module: cst.BaseExpression, function: cst.FunctionDef | None) -> bool:
        """Whether a model is only evaluated by its object, or ``eval()`` is called in the routine."""
        return self._is_only_evaluated(module, function) or self._routines.sets(module, function)

    def takes_batch(self, call: cst.Call) -> bool:
        """Return whether a call is given what a loader hands out, so that a name such as ``model`` is borne out."""
        return any(self._evaluator.value(argument.value).origin is Origin.BATCH for argument in call.args)

    def _script_evaluates(self, model: cst.BaseExpression, function: cst.FunctionDef | None) -> bool:
        """Whether a file without training switches a model that it runs at its top level to evaluation there."""
        if function is not None or self._backward.passes() or not self._routines.sets(model, None):
            return False
        return self._routines.set_by(None)[:1] == ["eval"]

    def _is_generator(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        if function.asynchronous is not None:
            return True
        lazy = self._tree.enclosing(call, cst.GeneratorExp, cst.FunctionDef)
        if isinstance(lazy, cst.GeneratorExp) and isinstance(self._tree.parent(lazy), cst.Return):
            return True
        return any(self._evaluator.definitions.enclosing_function(y) is function for y in self._tree.nodes(cst.Yield))
