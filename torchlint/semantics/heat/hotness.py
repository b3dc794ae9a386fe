"""What runs on every step: loops over batches, functions by role, and everything that these call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import libcst as cst

from torchlint.semantics import roles
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import COMPREHENSIONS
from torchlint.semantics.evaluate import lambdas
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat import cold, cut_batches, diffusion_samplers, generator_functions, ignite_handlers
from torchlint.semantics.heat.accumulation import goes_over_collected
from torchlint.semantics.heat.batch_sources import batch_evidence, in_comprehension, names_batch, steps_fed, takes_few
from torchlint.semantics.heat.clipping import clips_gradients
from torchlint.semantics.heat.early_stops import runs_once, stops_early
from torchlint.semantics.heat.guards import NO_FLAG, NO_OPTION, Guard, Guards
from torchlint.semantics.heat.handed_on import HandedOn
from torchlint.semantics.heat.handfuls import is_handful, says_three, takes_first
from torchlint.semantics.heat.long_passes import LongPasses
from torchlint.semantics.heat.loss_functions import returns_loss
from torchlint.semantics.heat.own_calls import FRAMES, OwnCalls
from torchlint.semantics.heat.own_models import is_of_pass
from torchlint.semantics.heat.sweeps import draws_handful, seeks_batch_size, tries_settings
from torchlint.semantics.heat.training_blocks import TrainingBlocks
from torchlint.semantics.roles import Heat, Role
from torchlint.semantics.training.phases import in_evaluation
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import method_call
from torchlint.syntax.remembered import remembered

__all__ = ("NO_FLAG", "NO_OPTION", "Heat", "Hotness", "Role")

_DECIDING: frozenset[type] = FRAMES | {cst.Assert, *COMPREHENSIONS}

_NEXT = ("__next__", "next")
"""What gives the next batch is called: by iterators over a loader, which may move it to the device as well."""

_MOST_CALLS = 2  # of functions of the file through which a loop may hand its model before one runs it

_ASKING = (cst.If, cst.IfExp, cst.BooleanOperation, cst.MatchCase, cst.ExceptHandler)
_BY_TURNS = frozenset((Role.TRAINING_LOOP, Role.STEP, Role.FORWARD, Role.LOSS))


class Hotness:
    """Answers whether a node runs on every step."""

    def __init__(self, evaluator: Evaluator, guards: Guards) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._guards = guards
        self._loops: dict[int, Heat | None] = {}
        self._functions: dict[tuple[int, frozenset[Guard]], Heat | None] = {}
        self._runs: dict[tuple[int, int], bool] = {}
        self._asked: dict[int, tuple[cst.CSTNode, Heat | None]] = {}
        self.own_calls = OwnCalls(evaluator.tree).of
        self._handed_on = HandedOn(evaluator, guards)
        self._blocks = TrainingBlocks(evaluator, guards, self.own_calls)
        self._long_passes = LongPasses(evaluator, guards)

    def heat(self, node: cst.CSTNode, besides: frozenset[Guard] = frozenset()) -> Heat | None:
        """Return what makes a node hot, None if it does not run on every step.

        Guards ``besides`` do not count: what flags guard that are off by default is hot once they are set.
        """
        child = node
        for ancestor in self._tree.ancestors(node):
            if ancestor.__class__ not in _DECIDING:
                pass
            elif isinstance(ancestor, cst.Assert) and child is ancestor.msg:
                return None  # only made when the program ends
            elif isinstance(ancestor, LOOPS):
                if child is ancestor.body or (isinstance(ancestor, cst.While) and child is ancestor.test):
                    found = self.loop(ancestor)
                    if found is not None and self._blocks.guard(node, ancestor, besides) is None:
                        return self._by_phase(found, node, ancestor)
                    if found is None and self.contains_hot_loop(ancestor):
                        return None
            elif isinstance(ancestor, COMPREHENSIONS):
                taken = batch_evidence(self._evaluator.iterated(ancestor.for_in))
                if child is not ancestor.for_in and taken is not None and not takes_few(ancestor, self._evaluator):
                    return Heat(ancestor, Role.EVALUATION_LOOP, taken)
            elif isinstance(ancestor, cst.FunctionDef):
                if child is ancestor.body:
                    found = self.function(ancestor, besides)
                    if found is None or self._blocks.guard(node, ancestor, besides) is not None:
                        return None
                    asked = self._asked_for(node, ancestor, found)
                    return self._by_phase(asked, node, ancestor) if asked is not None else None
            elif isinstance(ancestor, cst.Lambda):
                holder = self._tree.parent(ancestor)
                if child is ancestor.body and isinstance(holder, cst.Assign):
                    return self._called_by_name(holder)
                if child is ancestor.body and not lambdas.runs_at_once(ancestor, self._tree):
                    role = self._engine_role(ignite_handlers.transformed(ancestor, self._evaluator))
                    return Heat(ancestor, role, Evidence.INFERRED) if role is not None else None
            elif isinstance(ancestor, cst.ClassDef):
                return None
            child = ancestor
        return None

    def _by_phase(self, heat: Heat, node: cst.CSTNode, root: cst.CSTNode) -> Heat:
        """The heat of a branch: a loop that trains and evaluates by turns does not train in each of them."""
        if heat.role not in _BY_TURNS or not in_evaluation(node, root, self._tree):
            applies = heat.role is Role.TRAINING_LOOP and self._blocks.is_update(node, root)
            return heat._replace(role=Role.STEP) if applies else heat
        return heat._replace(role=Role.EVALUATION_LOOP) if heat.trains else heat._replace(evaluates=True)

    def _called_by_name(self, assignment: cst.Assign) -> Heat | None:
        """The heat of what is assigned to a name, by the calls of that name."""
        key = id(assignment), frozenset[Guard]()
        if key not in self._functions:
            self._functions[key] = None
            places = (target.target for target in assignment.targets)
            calls = (call for place in places for call in lambdas.calls_of(place, self._evaluator))
            heats = map(self.heat, calls)
            self._functions[key] = next(filter(None, heats), None)
        return self._functions[key]

    def loop(self, loop: cst.For | cst.While) -> Heat | None:
        """Return the role of a loop each of whose iterations is a step of training or evaluation."""
        key = id(loop)
        if key not in self._loops:
            self._loops[key] = None
            self._loops[key] = self._classify(loop)
        return self._loops[key]

    def contains_hot_loop(self, loop: cst.For | cst.While) -> bool:
        """Return whether a loop is an outer one, such as the loop over epochs."""
        inner: list[cst.For | cst.While] = [*self._tree.below(loop, cst.For), *self._tree.below(loop, cst.While)]
        return any(other is not loop and self.loop(other) is not None for other in inner)

    def _is_short(self, loop: cst.For | cst.While, batch: Evidence | None) -> bool:
        """Whether a loop ends after a handful of passes, and runs no more than once in a run of the program."""
        if batch is None and seeks_batch_size(loop, self._evaluator):
            return True
        is_few = any(ends(loop, self._evaluator) for ends in (stops_early, tries_settings, draws_handful))
        if isinstance(loop, cst.For):
            is_few = is_few or takes_first(loop.iter, self._evaluator) or says_three(loop, self._evaluator)
        return is_few and runs_once(loop, self._evaluator)

    def _classify(self, loop: cst.For | cst.While) -> Heat | None:
        batch = self._batches(loop)
        if self._is_short(loop, batch) or cold.waits_for_person(self.own_calls(loop), self._evaluator):
            return None
        training = self._optimises(loop)
        if batch is not None:
            role = Role.TRAINING_LOOP if training is not None else Role.EVALUATION_LOOP
            return Heat(loop, role, batch)
        if training is not None and not self._has_batch_loop(loop) and not cold.compares(loop, self._evaluator):
            return Heat(loop, Role.TRAINING_LOOP, Evidence.INFERRED)
        if self._runs_model(loop) and not self._is_wide(loop):
            is_given = cut_batches.takes_slices(loop, self._evaluator) or self.next_batch(loop) is not None
            is_given = is_given or generator_functions.source(loop, self._evaluator) is not None
            is_given = is_given or names_batch(loop, self._evaluator)
            role = Role.EVALUATION_LOOP if is_given else Role.SAMPLING_LOOP
            is_handed = not is_given and self._hands_model_on(loop)  # perhaps one pass for each of some settings
            return Heat(loop, role, Evidence.NAMED if is_handed else Evidence.INFERRED)
        if cut_batches.moves_slices(loop, self._evaluator) and not self._has_batch_loop(loop):
            return Heat(loop, Role.EVALUATION_LOOP, Evidence.INFERRED)
        if self._denoises(loop):
            return Heat(loop, Role.SAMPLING_LOOP, Evidence.INFERRED)
        found = next(filter(None, map(self.loop, generator_functions.consumers(loop, self._evaluator))), None)
        is_sampler = found is None and diffusion_samplers.improves(loop, self._evaluator, self.own_calls)
        taken = Role.SAMPLING_LOOP if is_sampler else found.role if found is not None else None
        return Heat(loop, taken, Evidence.INFERRED) if taken is not None else None

    def _denoises(self, loop: cst.For | cst.While) -> bool:
        """Whether each iteration takes a step of a diffusion process."""
        return any(roles.denoises(call) and self._guards.guard(call, loop) is None for call in self.own_calls(loop))

    def _batches(self, loop: cst.For | cst.While) -> Evidence | None:
        """How certain it is that each iteration takes a batch."""
        if isinstance(loop, cst.For):
            found = batch_evidence(self._evaluator.iterated(loop)) or cut_batches.takes_items(loop, self._evaluator)
            if found is not None:
                return found
            if generator_functions.takes_batches(loop, self._evaluator):
                return Evidence.INFERRED
            steps = list(steps_fed(loop, self.own_calls(loop), self._evaluator))
            return Evidence.INFERRED if steps and not any(map(self._is_whole_run, steps)) else None
        return self.next_batch(loop)

    def _is_whole_run(self, step: cst.FunctionDef) -> bool:
        """Whether a function goes through batches or many updates, itself or by a function that it calls."""
        called = (self._evaluator.definitions.definition(call.func) for call in self.own_calls(step))
        parts = [step, *(function for function in called if isinstance(function, cst.FunctionDef))]
        loops = (loop for part in parts[1:] for loop in self._tree.below(part.body, cst.For))
        return any(map(self._loops_over_batches, parts)) or any(self._optimises(loop) is not None for loop in loops)

    def next_batch(self, code: cst.For | cst.While | cst.FunctionDef) -> Evidence | None:
        """Return how certain it is that a loop or function asks for a batch itself: ``next(batches)``."""
        for call in self.own_calls(code):
            if self._evaluator.names.qualified(call.func) == "builtins.next" or method_call(call, *_NEXT) is not None:
                found = batch_evidence(self._evaluator.value(call))
                if found is not None:
                    return found
        return None

    def _has_batch_loop(self, loop: cst.For | cst.While) -> bool:
        inner = (other for other in self._tree.below(loop, cst.For) if other is not loop)
        apart = (other for other in inner if not goes_over_collected(other, loop, self._evaluator))
        given = (
            other
            for other in apart
            if batch_evidence(self._evaluator.iterated(other)) is not None or names_batch(other, self._evaluator)
        )
        return any(self._guards.guard(other, loop) is None for other in given)  # a validation now and then is none

    def _is_wide(self, loop: cst.For | cst.While) -> bool:
        """Whether a pass is no step but a whole epoch, a training or one of a few that are written out."""
        is_outer = self._has_batch_loop(loop) or self._trains_within(loop)
        return is_outer or is_handful(loop, self._evaluator) or self._long_passes.has(loop, self._optimises)

    def _trains_within(self, loop: cst.For | cst.While) -> bool:
        """Whether each iteration goes through a loop of training steps, as a round of roll-outs and updates does."""
        inner: list[cst.For | cst.While] = [*self._tree.below(loop, cst.For), *self._tree.below(loop, cst.While)]
        trains = (other for other in inner if other is not loop and self._guards.guard(other, loop) is None)
        return any(self._optimises(other) is not None for other in trains)

    def _optimises(self, loop: cst.For | cst.While) -> cst.Call | None:
        """The backward pass or optimizer step of this loop itself, also through a function that it calls."""
        for call in self.own_calls(loop):
            if in_comprehension(call, loop, self._evaluator) and self._batches(loop) is None:
                continue
            if self._blocks.is_step(call):
                return call
            definition = self._evaluator.definitions.definition(call.func)
            if isinstance(definition, cst.FunctionDef) and self.is_step_function(definition):
                return call
            if definition is None and id(call) in self._step_calls:
                return call
        return None

    @cached_property
    def _step_calls(self) -> frozenset[int]:
        """The calls of the methods that take training steps: ``agent.learn()``."""
        owner = self._evaluator.definitions.owner
        functions = (f for f in self._tree.nodes(cst.FunctionDef) if owner(f) is not None and self.is_step_function(f))
        return frozenset(id(call) for function in functions for call in self._evaluator.callers(function))

    @remembered
    def is_step_function(self, function: cst.FunctionDef) -> bool:
        """Return whether a function takes a training step itself, outside any loop of its own."""
        if cold.is_epoch(function, self._evaluator):
            return False
        return any(self._blocks.is_step(call) for call in self.own_calls(function))

    def _runs_model(self, loop: cst.For | cst.While) -> bool:
        """Whether the loop itself calls a model, as an inference loop does; loops over layers do not count."""
        if isinstance(loop, cst.For) and self._evaluator.iterated(loop).kind is Kind.MODULE:
            return False
        function = self._evaluator.definitions.enclosing_function(loop)
        if function is not None:
            owner = self._evaluator.definitions.owner(function)
            if owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE:
                is_hot = self.function(function) is not None  # as a part of the forward pass
                return not is_hot and diffusion_samplers.samples(loop, owner, self._evaluator, self.own_calls)
        for call in self.own_calls(loop):
            if self._is_run(call) and not is_of_pass(call.func, loop, self._evaluator):
                return self._guards.guard(call, loop) is None
        return self._hands_model_on(loop)

    def _is_run(self, call: cst.Call) -> bool:
        called = self._called(call)
        return called is not None and called.kind is Kind.MODULE and called.evidence >= Evidence.INFERRED

    def _hands_model_on(self, loop: cst.For | cst.While) -> bool:
        """Whether a function that each iteration calls runs a model, once: ``loss = run_episode(model, task)``."""
        calls, gradients = self.own_calls(loop), self._evaluator.gradients
        if any(map(self._is_run, calls)):
            return False
        called = [(call, self._evaluator.definitions.definition(call.func)) for call in calls]
        found = [(c, f) for c, f in called if isinstance(f, cst.FunctionDef) and self._guards.guard(c, loop) is None]
        if any(self._loops_over_batches(function) for _, function in found):
            return False
        return any(
            self._runs_once(function, _MOST_CALLS)
            for call, function in found
            if gradients.disabled(call) or gradients.function_disabled(function)
        )

    def _runs_once(self, function: cst.FunctionDef, most_calls: int) -> bool:
        """Whether a function that is no part of a model runs one outside of its loops, also by functions it calls."""
        owner = self._evaluator.definitions.owner(function)
        if owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE:
            return False
        key = (id(function), most_calls)
        if key not in self._runs:
            calls = self.own_calls(function)
            functions = (self._evaluator.definitions.definition(call.func) for call in calls) if most_calls else ()
            self._runs[key] = any(map(self._is_run, calls)) or any(
                isinstance(f, cst.FunctionDef) and self._runs_once(f, most_calls - 1) for f in functions
            )
        return self._runs[key]

    def _called(self, call: cst.Call) -> Value | None:
        """What a call runs: a module, also by a part of its forward pass, as in ``model.forward_decoder(x)``."""
        function = call.func
        if isinstance(function, cst.Attribute) and function.attr.value.startswith("forward"):
            function = function.value
        return self._evaluator.value(function) if isinstance(function, (cst.Name, cst.Attribute)) else None

    def function(self, function: cst.FunctionDef, besides: frozenset[Guard] = frozenset()) -> Heat | None:
        """Return what makes a function hot: its role, or a hot place that calls it, guards ``besides`` or not."""
        key = id(function), besides
        if key not in self._functions:
            self._functions[key] = None
            role, calls = self._role(function), self._evaluator.callers(function)
            own = Heat(function, role, Evidence.INFERRED) if role is not None else None
            self._functions[key] = own or self._called_from(calls or self._handed_on.to(function), besides)
        return self._functions[key]

    def _role(self, function: cst.FunctionDef) -> Role | None:
        owner = self._evaluator.definitions.owner(function)
        role = roles.by_name(function, owner, self._evaluator.definitions) if owner is not None else None
        if role is Role.EVALUATION_LOOP and cold.goes_through_loader(function, self._evaluator):
            role = None
        if role is not None or cold.takes_no_steps(function, self._evaluator):
            return role
        hands_on = owner is not None and function.name.value in _NEXT and self.next_batch(function) is not None
        steps = self.is_step_function(function) and not cold.explains(function, self._evaluator)
        if (
            hands_on
            or steps
            or clips_gradients(function, self.own_calls(function), self._evaluator)
            or self._evaluator.kept_batch(function)
        ):
            return Role.STEP
        is_loss = self._may_be_loss(owner) and returns_loss(function, self._evaluator)
        if is_loss and not self._loops_over_batches(function):
            return Role.LOSS
        if owner is None and self._evaluator.is_engine_step(function):
            return Role.EVALUATION_LOOP
        return self._named_step(function) or (self._handler_role(function) if owner is None else None)

    def _named_step(self, function: cst.FunctionDef) -> Role | None:
        """The role of a function that is named for a step, and that only other files call."""
        role = roles.of_step(function)
        if role is None or self._evaluator.is_called(function) or self._loops_over_batches(function):
            return None
        if cold.is_of_others(function, self._evaluator):
            return None
        is_noun = function.name.value.endswith("batch")  # of a batch that is made or looked at, unless a model gets it
        return role if not is_noun or self._calls_model(function) else None

    def _calls_model(self, function: cst.FunctionDef) -> bool:
        called = (self._called(call) for call in self.own_calls(function))
        return any(value is not None and value.kind is Kind.MODULE for value in called)

    def _handler_role(self, function: cst.FunctionDef) -> Role | None:
        """The role of a function that an engine of Ignite calls after each batch."""
        return self._engine_role(ignite_handlers.handled(function, self._evaluator))

    def _engine_role(self, engine: cst.Name | cst.Call | None) -> Role | None:
        """What an engine of Ignite runs for each batch."""
        found = ignite_handlers.role(engine, self._evaluator) if engine is not None else None
        if isinstance(found, cst.FunctionDef):
            return Role.STEP if self.is_step_function(found) else Role.EVALUATION_LOOP
        return found

    def _may_be_loss(self, owner: cst.ClassDef | None) -> bool:
        return owner is None or self._evaluator.definitions.class_kind(owner) is Kind.MODULE

    def _loops_over_batches(self, function: cst.FunctionDef) -> bool:
        loops = (node for node in self._tree.descendants(function.body) if isinstance(node, (cst.For, cst.While)))
        return any(self.loop(loop) is not None for loop in loops)

    def _asked_for(self, node: cst.CSTNode, function: cst.FunctionDef, heat: Heat) -> Heat | None:
        """The heat of a node in a hot function by the calls that do not leave it out: ``loss(x, details=True)``."""
        calls, told = self._evaluator.callers(function), self._evaluator.told
        asking = [call for call in calls if not told.leaves_out(node, function, call)]
        if len(asking) == len(calls) or heat.role is Role.FORWARD:
            return heat
        if id(node) not in self._asked:
            self._asked[id(node)] = node, None  # a call of itself asks for nothing more
            found = self._called_from(asking)
            if heat.root is function and (found is not None or not any(map(self.heat, calls))):
                found = heat
            self._asked[id(node)] = node, found
        return self._asked[id(node)][1]

    def _called_from(self, calls: Sequence[cst.Call], besides: frozenset[Guard] = frozenset()) -> Heat | None:
        found: Heat | None = None
        for call in calls:
            is_look = isinstance(self._tree.parent(call), cst.Expr)  # a check that is asked for is no step
            heat = self.heat(call, frozenset() if is_look else besides)
            looks_up = isinstance(self._tree.enclosing(call, *_ASKING, cst.FunctionDef), _ASKING)  # what is kept then
            if heat is None or heat.role is Role.METRIC or (heat.role is Role.DENOISING and looks_up):
                continue  # helpers of metrics work on copies on the host
            heat = heat._replace(evidence=min(heat.evidence, Evidence.INFERRED))
            if heat.evidence is Evidence.INFERRED and heat.role is not Role.SAMPLING_LOOP:
                return heat
            if found is None or heat.evidence > found.evidence:
                found = heat  # training says more than sampling
        return found
