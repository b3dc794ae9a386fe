"""Forward passes whose graph nobody can use: all that goes on from them are detached values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.backward import NO_RESULTS, Backward
from torchlint.semantics.autograd.frozen import ENTRY_POINTS
from torchlint.semantics.binding.flow import last_statement
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.drawn_tokens import ACTS
from torchlint.semantics.evaluation.entry_points import (
    belongs_to_module,
    lacks_parameters,
    may_be_model,
    method_behind,
)
from torchlint.semantics.evaluation.fates import Fate, Fates, names_bound
from torchlint.semantics.evaluation.inference import Inference, InferenceCall
from torchlint.semantics.evaluation.own_care import cares_for_itself
from torchlint.semantics.evaluation.read_inputs import ReadInputs
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.process.testing import tests
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

# Modules of torch that hold other modules, or are a network by themselves.
_NETWORKS = re.compile(r"\.(Module|Sequential|DataParallel|DistributedDataParallel|Transformer\w*|LSTM|GRU|RNN)$")
_PACKERS = ("pack_padded_sequence", "pack_sequence", "PackedSequence")
_RECURRENT = re.compile(r"\.(LSTM|GRU|RNN)$")
# Networks that differentiate by their input while they compute.
_DIFFERENTIATES = re.compile(r"energy|energies|force|hamiltonian|lagrangian|potential|jacobian|hessian", re.IGNORECASE)
# What may train a model that it is given with its optimizer.
_TRAINS = re.compile(r"(^|_)(train|fit|learn|update|finish|optimi[sz]e|improve|step|backprop\w*)(_|$)")
# Methods that only compute; others may keep what they give for a training step, out of sight.
_COMPUTES = frozenset(
    "forward forward_features encode decode encode_image encode_text get_image_features get_text_features".split()
)


# What a trained model does.
_USES = re.compile(r"^_?(generate|predict|sample|infer|synthesi[sz]e|reconstruct)(_|$)")
_AGENT = re.compile(r"Agent|Policy|Actor|Critic|Player|DQN|PPO|DDPG|SAC")
_GAMES = ("gym", "gymnasium")
_STAND_INS = frozenset(f"torch.{name}" for name in "zeros ones rand randn empty randint".split())


class DetachedForward(NamedTuple):
    """A forward pass of a model, and where its result loses the graph."""

    variable: cst.Name | None
    """The variable that holds the result and is only read detached; None where it is detached in place."""

    is_network: bool
    """Whether the model is more than one layer, and not visibly without parameters."""

    is_frozen: bool
    switches_off: bool
    """Whether the model computes without gradients, whoever calls it."""

    differentiates: bool
    """Whether the model may need a graph for what it computes."""

    is_array: bool
    """Whether the result becomes an array, for which gradients must be off already, wherever that is done."""


class DetachedForwards:
    """Finds them."""

    def __init__(self, evaluator: Evaluator, inference: Inference, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._inference = inference
        self._backward = backward
        self.fates = Fates(evaluator)
        self._fates_of_packed = Fates(evaluator, packed=True)
        self._read_inputs = ReadInputs(evaluator)

    def forward(self, call: cst.Call) -> DetachedForward | None:
        """Return the detached forward pass that a call of a model is, None if its graph can be used."""
        if not isinstance(call.func, (cst.Name, cst.Attribute)):
            return None
        model = self._inference.called_model(call.func)
        if model is None or (model.evidence < Evidence.INFERRED and not self._takes_tensor(call)):
            return None
        fate = (self._fates_of_packed if self._may_be_packed(model) else self.fates).of(call)
        if fate not in (Fate.VALUES, Fate.ARRAY):
            return None
        return DetachedForward(
            next(self._variables(call), None),
            self._is_network(model),
            self._inference.is_frozen(call.func),
            self._inference.switches_off(call.func, model),
            self._differentiates(call, model) or self._inference.handed_results.keeps_terms(call),
            fate is Fate.ARRAY,
        )

    def _is_network(self, model: Value) -> bool:
        if model.name is not None and model.name.startswith("torch.nn."):
            return _NETWORKS.search(model.name) is not None
        return not lacks_parameters(model, self._evaluator)

    @remembered
    def outside_training(self, call: cst.Call) -> InferenceCall | None:
        """Return the inference call that a detached forward pass is where nothing else says that a routine evaluates.

        None where the caller may decide: that of a function which runs the model once, of a method of a model.
        """
        if id(call) not in self.candidates or self._evaluator.names.qualified(call.func) is not None:
            return None  # asked first: most calls are none of a model
        function = self._evaluator.definitions.enclosing_function(call)
        is_said = self._is_repeated(call) or self._is_of_loaded(call) or self._read_inputs.given_to(call)
        if not is_said and (function is None or not self._is_named(function)):
            return None
        found = self.forward(call) if self._decides(function) else None
        if found is None or found.is_array or not found.is_network or found.differentiates:
            return None
        if not is_said and self._reads_model(call, function):
            return None
        if tests(self._evaluator.scopes) or cares_for_itself(call, self._evaluator) or self._may_keep(call):
            return None
        model = self._inference.called_model(call.func) if may_be_model(call.func) else None
        gradients = self._evaluator.gradients
        if (
            (is_said and self._is_tried_out(call))
            or self._is_trained_elsewhere(call.func)
            or gradients.sometimes_disabled(call)
        ):
            return None
        return InferenceCall(
            function,
            Evidence.INFERRED,
            trains=False,
            frozen=found.is_frozen,
            is_generator=False,
            returns_host_values=True,
            switches_off=found.switches_off,
            needs_gradients=model is not None and self._inference.wants_graph(call, model),
            is_part=is_said
            or function is None
            or not self._inference.handed_out.are_host_values(
                function, call, alone=True, is_trained=self._inference.is_trained_method(call)
            ),
            in_loop=False,
            is_dry_run=False,
        )

    def _reads_model(self, call: cst.Call, function: cst.FunctionDef | None) -> bool:
        """Whether a function asks the model for what the pass has left in it: ``return out.detach(), model.kl``."""
        is_method = isinstance(call.func, cst.Attribute) and self._evaluator.value(call.func).kind is not Kind.MODULE
        model = call.func.value if isinstance(call.func, cst.Attribute) and is_method else call.func
        if function is None or not isinstance(model, (cst.Name, cst.Attribute)):
            return False
        read = self._tree.below(function.body, cst.Attribute)
        later = (each for each in read if self._tree.order(each) > self._tree.order(call))
        return any(is_same(each.value, model) and each.attr.value not in NO_RESULTS for each in later)

    @remembered
    def _is_named(self, function: cst.FunctionDef) -> bool:
        """Whether a function is named for what a trained model does, and no step of training calls it, nor an agent."""
        name, owner = function.name.value, self._evaluator.definitions.owner(function)
        if _USES.search(name) is None or ACTS.search(name) or any(map(self._evaluator.scopes.imports, _GAMES)):
            return False
        if self._inference.leaked_results.models_keep:
            return False  # what a hook or a forward pass keeps, others may read with its graph
        contexts = self._evaluator.gradients.contexts
        if owner is not None and (_AGENT.search(owner.name.value) or contexts.stay_switched(owner)):
            return False
        if not self._inference.methods.is_plain(function):
            return False
        for call in self._inference.methods.possible_calls(function):
            around = self._evaluator.definitions.enclosing_function(call)
            if self._evaluator.gradients.disabled(call) or not self._decides(around):
                return False
        return True

    def _may_be_packed(self, model: Value) -> bool:
        """Whether a model may give a packed sequence: a recurrent layer, or any in a file that packs."""
        return bool(_RECURRENT.search(model.name or "")) or self._packs

    @cached_property
    def _packs(self) -> bool:
        return any(map(self._tree.named, _PACKERS))

    def _takes_tensor(self, call: cst.Call) -> bool:
        """Whether a call is given a batch or a tensor, so that a name such as ``model`` is borne out."""
        given = (self._evaluator.value(argument.value) for argument in call.args)
        is_known = any(value.origin is Origin.BATCH or value.is_tensor for value in given)
        return is_known or self._read_inputs.given_to(call)

    @cached_property
    def occur(self) -> bool:
        """Whether there is any such call outside training in the file."""
        return bool(self.candidates) and any(
            self.outside_training(call) is not None for call in self._tree.nodes(cst.Call)
        )

    @cached_property
    def candidates(self) -> frozenset[int]:
        """The calls which may be such: asked of loops, of which there are few."""
        around: list[cst.CSTNode] = [
            loop
            for loop in (*self._tree.nodes(cst.For), *self._tree.nodes(cst.While))
            if self._decides(self._evaluator.definitions.enclosing_function(loop)) or self._defines(loop)
        ]
        owners = (self._tree.enclosing(one, cst.ClassDef) for one in self._loading)
        around += [owner for owner in owners if owner is not None]
        around += [*self._helpers, *self._read_inputs.frames]
        around += [each for each in self._tree.nodes(cst.FunctionDef) if self._decides(each) and self._is_named(each)]
        return frozenset(id(call) for node in around for call in self._tree.below(node, cst.Call))

    def _decides(self, function: cst.FunctionDef | None) -> bool:
        """Whether a function, or the top level of a script, is no test or method of a model, and does not train."""
        if function is not None and (belongs_to_module(function, self._evaluator) or self._is_test(function)):
            return False
        return not self._backward.passes(function or self._tree.module)

    def _defines(self, loop: cst.CSTNode) -> bool:
        """Whether a loop holds a function, which decides for itself."""
        return bool(self._tree.below(loop, cst.FunctionDef))

    @cached_property
    def _helpers(self) -> list[cst.FunctionDef]:
        """The functions that are called in a loop of a function which is none of them."""
        found = []
        for function in self._tree.nodes(cst.FunctionDef):
            calls = self._evaluator.callers(function) if self._decides(function) else ()
            outer = [self._evaluator.definitions.enclosing_function(call) for call in calls]
            if outer and all(map(self._is_in_loop, calls)) and all(map(self._decides, outer)):
                found.append(function)
        return found

    def _is_repeated(self, call: cst.Call) -> bool:
        """Whether a call stands in a loop of its function, or is detached at once in a helper that such loops call."""
        if self._is_in_loop(call):
            return True
        attribute = self._tree.parent(call)
        around = self._tree.enclosing(call, cst.FunctionDef)
        is_detached = isinstance(attribute, cst.Attribute) and attribute.attr.value == "detach"
        return is_detached and any(helper is around for helper in self._helpers)

    def _is_in_loop(self, call: cst.Call) -> bool:
        """Whether a call stands in a loop of its function, which does not leave it after one pass."""
        loop = self._tree.enclosing(call, cst.For, cst.While, cst.FunctionDef)
        return isinstance(loop, (cst.For, cst.While)) and not isinstance(last_statement(loop.body), cst.Break)

    def _is_of_loaded(self, call: cst.Call) -> bool:
        """Whether an object runs the model that it has loaded itself, in a class that computes no gradients."""
        held = call.func.value if self._loading and isinstance(call.func, cst.Attribute) else None
        owner = self._evaluator.definitions.receiver(held) if isinstance(held, cst.Name) else None
        if owner is None or self._evaluator.gradients.contexts.stay_switched(owner):
            return False
        loads = (one for one in self._loading if is_same(one.value, call.func))
        return any(self._tree.within(one, owner) for one in loads)

    @cached_property
    def _loading(self) -> list[cst.Attribute]:
        """The ``model.load_state_dict`` of the file's calls."""
        loads = map(method_call, self._tree.calls_named("load_state_dict"))
        return [one for one in loads if one is not None]

    def _is_test(self, function: cst.FunctionDef) -> bool:
        return function.name.value.startswith("test_") or function.name.value == "__init__"

    def _may_keep(self, call: cst.Call) -> bool:
        """Whether a method out of sight may keep what it computes for a training step: ``agent.act(state)``."""
        called = call.func
        if not isinstance(called, cst.Attribute) or called.attr.value in _COMPUTES:
            return False
        if called.attr.value not in ENTRY_POINTS and self._evaluator.value(called).kind is Kind.MODULE:
            return False
        return method_behind(called, self._evaluator.value(called.value), self._evaluator) is None

    @remembered
    def _is_trained_elsewhere(self, model: cst.BaseExpression) -> bool:
        """Whether another file is given a model and its optimizer, and may train by what the model has kept."""
        for call in self._tree.nodes(cst.Call):
            if not _TRAINS.search(identifier(call.func)) or not any(is_same(a.value, model) for a in call.args):
                continue
            kinds = {self._evaluator.value(argument.value).kind for argument in call.args}
            if Kind.OPTIMIZER in kinds and self._evaluator.definitions.definition(call.func) is None:
                return True
        return False

    def _is_tried_out(self, call: cst.Call) -> bool:
        """Whether a model is given a tensor that stands in for data, to see what comes out."""
        return any(self._stands_in(argument.value) for argument in call.args)

    def _stands_in(self, given: cst.BaseExpression) -> bool:
        """Whether a tensor is made of nothing: ``torch.zeros(1, 3, 224, 224)``."""
        if isinstance(given, cst.Name):
            made = [binding.value for binding in self._evaluator.flow.definitions(given)]
            return bool(made) and all(isinstance(value, cst.Call) and self._stands_in(value) for value in made)
        while (method := method_call(given, "to", "cuda", "cpu", "float", "half")) is not None:
            given = method.value
        return isinstance(given, cst.Call) and self._evaluator.names.qualified(given.func) in _STAND_INS

    def _variables(self, call: cst.Call) -> Iterator[cst.Name]:
        """The variables that an assignment puts a result into as it is."""
        statement = self._tree.parent(call)
        for target in statement.targets if isinstance(statement, cst.Assign) else ():
            yield from (name for name in names_bound(target.target) if name is not None)

    def _differentiates(self, call: cst.Call, model: Value) -> bool:
        """Whether a model may compute gradients itself, or somebody may look at what its layers compute."""
        if isinstance(model.definition, cst.ClassDef):
            return self._inference.gradient_uses.of_model(model, call)
        said = [call.func, *self._variables(call)]
        return any(_DIFFERENTIATES.search(identifier(name)) for name in said)
