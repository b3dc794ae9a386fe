"""Values that outlive the step which computed them: sums and lists over steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.updates import Updates
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.inference import Inference
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Hotness, Role
from torchlint.semantics.retention.averages import Averages
from torchlint.semantics.retention.carried_states import CarriedStates
from torchlint.semantics.retention.carrying import Carrying, is_number
from torchlint.semantics.retention.collected import Collected
from torchlint.semantics.retention.detachable import Detachable, tensor_branches
from torchlint.semantics.retention.few_passes import is_over_models
from torchlint.semantics.retention.graphless import Graphless
from torchlint.semantics.retention.holders import Holders
from torchlint.semantics.retention.idle_graphs import IdleGraphs
from torchlint.semantics.retention.meters import Given, Meters
from torchlint.semantics.retention.metric_states import MetricStates
from torchlint.semantics.retention.record_fields import RecordFields
from torchlint.semantics.retention.rollouts import Rollouts
from torchlint.semantics.retention.statements import Statements
from torchlint.semantics.retention.stores import Keeping, Retention, Store, appended
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_NO_SUMS = frozenset((Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE, Kind.NDARRAY, Kind.STRING))


class Retentions:
    """Finds what loops keep."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness, backward: Backward, inference: Inference) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness
        self._backward = backward
        self._inference = inference
        self._meters = Meters(evaluator)
        self._statements = Statements(evaluator, self._meters)
        self._updates = Updates(evaluator)
        self._rollouts = Rollouts(evaluator)
        self._holders = Holders(evaluator, hotness)
        self._idle = IdleGraphs(evaluator, self._statements, backward, self._holders)
        self._record_fields = RecordFields(evaluator, backward, self._holders, self._idle)
        self._carrying = Carrying(evaluator, backward, inference, self._meters)
        self._graphless = Graphless(evaluator, backward)
        self._collected = Collected(evaluator, hotness, backward)
        self._graphs_given: dict[int, frozenset[str]] = {}
        self.detachable = Detachable(evaluator)
        self.metric_states = MetricStates(evaluator)
        self.carried_states = CarriedStates(evaluator, hotness, backward)
        self.averages = Averages(evaluator, inference.frozen)

    @cached_property
    def has_steps(self) -> bool:
        """Whether a loop over steps, or a function that is one, may stand in the file: nothing is kept without."""
        if self._inference.speaks_of_evaluation:
            return True
        loops: list[cst.For | cst.While] = [*self._tree.nodes(cst.For), *self._tree.nodes(cst.While)]
        if any(self._hotness.loop(loop) is not None for loop in loops):
            return True
        heats = ((self._hotness.function(function), function) for function in self._tree.nodes(cst.FunctionDef))
        return any(heat is not None and self._is_step(heat, function) for heat, function in heats)

    @cached_property
    def occur(self) -> bool:
        """Whether a statement of the file keeps anything with its graph."""
        kinds: tuple[type[cst.AugAssign | cst.Assign | cst.Call], ...] = (cst.AugAssign, cst.Assign, cst.Call)
        nodes = (node for kind in kinds for node in self._tree.nodes(kind))
        if not self.has_steps:
            return self._idle.occur and any(self._idle.kept(node) is not None for node in nodes)
        kept: list[Keeping] = [*self._tree.nodes(cst.ListComp), *self._tree.nodes(cst.GeneratorExp), *nodes]
        return any(self.retention(node) is not None for node in kept)

    @remembered
    def retention(self, node: Keeping) -> Retention | None:
        """Return what a statement, or a comprehension over steps, keeps with its graph.

        ``total += value``, ``total = total + value``, ``total = torch.cat([total, value])``, ``items.append(value)``,
        ``items[i] = value``, ``other, items[i] = f()``, ``total.add_(value)``, ``meter.update(value)``
        """
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            found = self._collected.retention(node)
            return None if found is not None and self._graphless.holds(node.elt) else found
        found = self._found(node)
        if found is None or not found.is_reported:
            return found
        if not isinstance(node, cst.AugAssign) and self.averages.occur and self.averages.kept(node) is not None:
            return None  # which tells more
        carrying = tuple(value for value in found.values if not self._graphless.holds(value))
        if not carrying:
            return None
        found = replace(found, values=carrying)
        given = self._meters.given(node) if isinstance(node, cst.Call) and appended(node) is None else None
        held = [found.variable, *(self._meters.places(given) if given is not None else ())]
        return None if any(self._holders.is_emptied_by_steps(each, node) for each in held) else found

    def _found(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """What a statement keeps, whoever empties it."""
        found = self._retention(node)
        if found is None or not found.is_reported:
            return self._from_callers(node) or self._of_idle(node) or self._of_record(node) or found
        given = self._meters.given(node) if isinstance(node, cst.Call) and appended(node) is None else None
        if given is None or not self._meters.keeps_tensors(given.function):
            return found
        inside = self._given_graph(given.function)
        values = {id(v) for name, v in zip(given.names, given.values, strict=True) if name in inside}
        left = tuple(v for v in found.values if id(v) not in values)
        return replace(found, values=left) if left else None

    def _of_idle(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """What an object keeps with a graph, where all that reads it reads it without."""
        kept, function = self._idle.kept(node), self._evaluator.definitions.enclosing_function(node)
        calls = self._evaluator.callers(function) if kept is not None and function is not None else ()
        if kept is None or any(each is not None and each.is_reported for each in map(self._retention, calls)):
            return None  # or a call says it
        return Retention(kept.variable, kept.values, Evidence.INFERRED, False, False, True, False, False, True)

    def _of_record(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """What a record holds that a replay of the file puts away."""
        kept = self._record_fields.kept(node) if isinstance(node, cst.Call) else None
        return Retention(kept.variable, kept.values, Evidence.INFERRED, False, False, True, False) if kept else None

    def _from_callers(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """What a method keeps of its parameters, where its calls give it something with a graph."""
        function = self._meters.inside(node)
        kept = self._statements.kept(node) if function is not None else None
        if function is None or kept is None or kept.by_method:
            return None
        if self._given_graph(function).isdisjoint(self._meters.names_kept(function, node)):
            return None
        return Retention(kept.variable, kept.values, Evidence.INFERRED, False, False, True, False)

    def _given_graph(self, function: cst.FunctionDef) -> frozenset[str]:
        """The parameters of a method to which a call gives a graph to keep; none if another gives it a number."""
        key = id(function)
        if key not in self._graphs_given:
            self._graphs_given[key] = frozenset()
            given = [(call, self._meters.given(call)) for call in self._evaluator.callers(function)]
            taken = [(call, each) for call, each in given if each is not None and each.function is function]
            numbers = {n for _, g in taken for n, v in zip(g.names, g.values, strict=True) if not self._is_plain(v)}
            if len(taken) == len(given):
                found = (name for call, each in taken for name in self._with_graphs(call, each))
                self._graphs_given[key] = frozenset(found) - numbers
        return self._graphs_given[key]

    def _with_graphs(self, call: cst.Call, given: Given) -> Iterator[str]:
        """The parameters that a call gives a graph, which nobody wants."""
        found = self._retention(call)
        kept = {id(value) for value in found.values} if found is not None and found.is_reported else set()
        yield from (name for name, value in zip(given.names, given.values, strict=True) if id(value) in kept)

    def _is_plain(self, value: cst.BaseExpression) -> bool:
        """Whether a value is a tensor that nobody detaches where it is handed over."""
        return not is_number(value) and self._evaluator.value(value).is_tensor

    def _retention(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Retention | None:
        """What a statement keeps with its graph, as far as its own function tells."""
        kept = self._statements.kept(node)
        if kept is None or all(is_number(value) and not self._has_graph(value) for value in kept.values):
            return None
        heat = self._place(node, kept)
        if heat is None or (self._evaluator.gradients.disabled(node) and not self._keeps_object(kept)):
            return None
        if not kept.by_method and self._evaluator.value(kept.variable).kind in _NO_SUMS:
            return None
        if isinstance(node, cst.AugAssign) and self._is_object_or_view(kept.variable):
            return None
        if kept.index is not None and not self._varies(kept.index, heat.root) and not self._is_pool(kept, node):
            return None
        if is_over_models(heat.root, self._evaluator):
            return None
        if heat.role is Role.SAMPLING_LOOP:
            is_remade = self._holders.is_remade(kept.variable, node, heat.root)
            return None if is_remade else self._of_rollout(kept, node)
        if isinstance(node, cst.AugAssign) and self._extends_list(kept):
            return None
        made = [(value, self._carrying.records.entry(value, heat.root)) for value in kept.values]
        found = [(value, self._carrying.carries(source, node, heat, kept.part)) for value, source in made]
        carrying = [(value, *known) for value, known in found if known is not None]
        records = () if carrying else tuple(v for v in kept.values if self._carrying.holds_loss(v, kept, heat))
        if not carrying and not records:
            return None
        return Retention(
            kept.variable,
            records or tuple(branch for value, _, _ in carrying for branch in tensor_branches(value, self._evaluator)),
            min((evidence for _, evidence, _ in carrying), default=Evidence.INFERRED),
            self._may_be_backpropagated(kept, node, heat),
            self._is_remade(kept, node, heat),
            all(complete for _, _, complete in carrying),
            kept.part is not None,
            bool(records),
        )

    def _has_graph(self, value: cst.BaseExpression) -> bool:
        """Whether more than its name tells that a value carries a graph: the number of people in a density map."""
        found = self._evaluator.value(value)
        return found.is_tensor and found.graph is Graph.ATTACHED and found.evidence >= Evidence.INFERRED

    def _is_object_or_view(self, variable: cst.BaseExpression) -> bool:
        """Whether a sum is an object that adds up by itself, or a part of another tensor, which it then writes to."""
        bindings = self._evaluator.flow.definitions(variable) if isinstance(variable, cst.Name) else ()
        made = [b.value for b in bindings if b.kind is BindingKind.ASSIGNMENT and b.value is not None and not b.path]
        parts = (each.value for each in made if isinstance(each, cst.Subscript))
        is_object = any(self._evaluator.value(each).kind is Kind.INSTANCE for each in made)
        return is_object or any(self._evaluator.value(part).is_tensor for part in parts)

    def _extends_list(self, kept: Store) -> bool:
        """Whether a list takes all items of something that only its name makes a tensor: texts of a ``decoder``."""
        bindings = self._evaluator.scopes.bindings(kept.variable) if isinstance(kept.variable, cst.Name) else []
        is_list = any(isinstance(binding.value, cst.List) and not binding.path for binding in bindings)
        calls = [value for value in kept.values if isinstance(value, cst.Call) and "decode" in identifier(value.func)]
        is_named = all(self._evaluator.value(call).evidence < Evidence.INFERRED for call in calls)
        return is_list and len(calls) == len(kept.values) and is_named

    def _of_rollout(self, kept: Store, node: cst.CSTNode) -> Retention | None:
        given = self._meters.given(node) if kept.by_method and isinstance(node, cst.Call) else None
        if given is None:
            return self._rollouts.retention(kept)
        return self._rollouts.handed(kept, given, self._meters.places(given))

    def _is_remade(self, kept: Store, node: cst.CSTNode, heat: Heat) -> bool:
        """Whether each step starts anew what the variable holds, or the element of it that is assigned to."""
        held, variable = self._holders, kept.variable
        if self._is_forward(heat) and held.is_reset(variable, node):
            return True
        if held.is_remade(variable, node, heat.root) or held.is_of_one_step(variable, node, heat.root):
            return True
        return kept.index is not None and held.is_carried(kept, node, heat.root)

    def _may_be_backpropagated(self, kept: Store, node: cst.CSTNode, heat: Heat) -> bool:
        """Whether a variable reaches a backward pass, or a function of another file that updates weights by it.

        What a loop collects that only runs a model may be backpropagated by the callers of its function.
        """
        variable, frame = kept.variable, self._frame(node, kept.variable, heat)
        if self._backward.start_from_named and not isinstance(variable, cst.Name):
            return True
        if self._backward.reaches(variable, frame) or self._updates.learn_from(variable, frame):
            return True
        if isinstance(variable, cst.Name) and self._inference.fed_passes.by_attribute([variable], frame):
            return True
        if self._inference.leaked_results.is_read_with_graph(variable):
            return True
        if not isinstance(frame, cst.FunctionDef):
            return False
        fed = self._inference.fed_passes
        if heat.trains or fed.may_run_unseen(frame):
            return self._is_handed_out(variable, frame) and (not heat.trains or fed.by(frame))
        evaluates = self._inference.routine_evaluates(frame)
        return self._carrying.handed.may_be_differentiated(kept.values, variable, frame, evaluates=evaluates)

    def _is_handed_out(self, variable: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        results = self._evaluator.definitions.results(function)
        return self._backward.flows_into([variable], results, function)

    # What is kept

    def _varies(self, index: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether every step stores at another place: the index is bound by the loop over steps, or counted in it."""
        names = (node for node in self._tree.descendants(index) if isinstance(node, cst.Name))
        bound = (binding.node for name in names for binding in self._evaluator.flow.definitions(name))
        return any(self._tree.enclosing(place, *LOOPS) is root for place in bound)

    def _is_pool(self, kept: Store, node: cst.CSTNode) -> bool:
        """Whether a list takes a value in place of another, which the same function fills with graphs otherwise."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or kept.index is None or literal(kept.index) is not None:
            return False
        calls = self._tree.below(function.body, cst.Call)
        filling = (call for call in calls if (store := appended(call)) and is_same(store.variable, kept.variable))
        return any(found is not None and found.is_reported for found in map(self.retention, filling))

    def _keeps_object(self, kept: Store) -> bool:
        """Whether a tensor that exists already is stored in a container: no context takes its graph away."""
        is_written = kept.index is not None and self._evaluator.value(kept.variable).is_tensor
        return kept.is_stored and not is_written and all(map(self._exists, kept.values))

    def _exists(self, value: cst.BaseExpression) -> bool:
        """Whether an expression computes nothing, as a part of a tensor would be."""
        if isinstance(value, cst.Subscript):
            return not self._evaluator.value(value.value).is_tensor
        return isinstance(value, (cst.Name, cst.Attribute))

    # Where

    def _place(self, node: cst.CSTNode, kept: Store) -> Heat | None:
        """The loop over steps around a node, or the function that is one step, where the variable outlives it."""
        variable, child = kept.variable, node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, LOOPS) and child is ancestor.body:
                found = self._hotness.loop(ancestor)
                if found is None or found.role is Role.SAMPLING_LOOP:
                    is_evaluated = any(self._carrying.evaluated.gives(value, ancestor) for value in kept.values)
                    is_evaluated = is_evaluated and not self._carrying.evaluated.is_plain_on_host(variable)
                    found = Heat(ancestor, Role.EVALUATION_LOOP, Evidence.INFERRED) if is_evaluated else found
                if found is not None:
                    return found
            elif isinstance(ancestor, cst.FunctionDef):
                found = self._hotness.function(ancestor) if self._holders.is_from_outside(variable, ancestor) else None
                is_here = found is not None and (found.root is ancestor or self._is_helper(found, ancestor))
                return found if found is not None and is_here and self._is_step(found, ancestor) else None
            elif isinstance(ancestor, (cst.ClassDef, cst.Lambda)):
                return None
            child = ancestor
        return None

    def _is_step(self, heat: Heat, function: cst.FunctionDef) -> bool:
        """Whether a function is one training step, by itself or together with the framework that calls it."""
        is_step = heat.trains or self._hotness.is_step_function(function) or self._is_framework_step(function)
        return is_step or (heat.role is Role.FORWARD and bool(self._backward.passes()))

    def _is_framework_step(self, function: cst.CSTNode) -> bool:
        return any(step is function for step, _ in self._backward.framework_losses())

    def _is_forward(self, heat: Heat) -> bool:
        """Whether a heat is that of a forward pass, of which others take the backward pass."""
        return heat.role is Role.FORWARD and not self._is_framework_step(heat.root)

    def _is_helper(self, heat: Heat, function: cst.FunctionDef) -> bool:
        """Whether a training step of the file runs a function that is no part of a model, whose losses may see it."""
        return heat.trains and not self._is_of_model(function)

    def _is_of_model(self, function: cst.FunctionDef) -> bool:
        owner = self._evaluator.definitions.owner(function)
        return owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE

    def _frame(self, node: cst.CSTNode, variable: cst.BaseExpression, heat: Heat) -> cst.CSTNode:
        """Where to look for uses of a variable: its function; for attributes the class."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None:
            return self._tree.module
        if self._holders.is_of_self(variable):
            owner = self._evaluator.definitions.owner(function)
            is_own = owner is not None and not self._is_forward(heat) and self._tree.within(heat.root, owner)
            return owner if is_own and owner is not None else self._tree.module
        return self._tree.module if self._holders.is_from_outside(variable, function) else function
