"""Whether what a loop keeps carries a graph, and nobody can want that."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.cut_off import CutOff
from torchlint.semantics.autograd.handed import HandedLosses
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind, targets
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.names import unpack
from torchlint.semantics.evaluate.narrowing import is_detached_tensor
from torchlint.semantics.evaluate.told_gradients import left_open_for
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.evaluation.inference import Inference
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.retention.evaluated_outputs import EvaluatedOutputs
from torchlint.semantics.retention.meters import Meters
from torchlint.semantics.retention.records import Records
from torchlint.semantics.retention.stores import Store, elements
from torchlint.semantics.values import Graph, Kind, Origin
from torchlint.syntax.calls import identifier, literal, method_call

_FRESH = (cst.Name, cst.Call, cst.BinaryOperation)
"""What is known by its value alone."""

_LOSS_KEY = re.compile(r"(^|_)(loss|total|objective|elbo|nll|cost)(_|$)")
"""What the item of a dictionary is called that is differentiated."""

# What is named for how much there is of something: `sample_size`, which a loss is divided by.
_COUNTS = re.compile(r"(^|_)(size|count|num|len|length)s?$|^(n|num)_|^n?tokens$")


class Carrying:
    """Answers it, by what the step around a value differentiates and by what is known of the value."""

    def __init__(self, evaluator: Evaluator, backward: Backward, inference: Inference, meters: Meters) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._inference = inference
        self._meters = meters
        self.handed = HandedLosses(evaluator, backward)
        self._cut_off = CutOff(evaluator)
        self.records = Records(evaluator)
        self.evaluated = EvaluatedOutputs(evaluator, inference)

    def carries(
        self, value: cst.BaseExpression, node: cst.CSTNode, heat: Heat, part: int | None
    ) -> tuple[Evidence, bool] | None:
        """How certain it is that a value carries a graph, and whether the step around it is complete."""
        if self._is_mapping(value) or self._evaluator.value(value).origin is Origin.PARAMETER:
            return None
        if any(map(self._is_changed_at_calls, self.records.given(value))) or self.records.may_be_replaced(value):
            return None
        if self._is_beside_loss(value):
            return None
        if self._inference.frozen.gives(value) or is_detached_tensor(value, self._evaluator):
            return None
        if part is None and self._backward.differentiates(value, heat.root):
            return Evidence.NAMED if self._backward.may_be_number(value) else Evidence.INFERRED, True
        if part is None and heat.trains and self._is_handed(value):
            return Evidence.INFERRED, True
        if part is None and heat.trains and (self._is_given_in_record(value) or self._is_item(value, heat.root)):
            return Evidence.INFERRED, True
        if part is None and heat.trains and not self._is_known(value) and self._cut_off.carries(value):
            return Evidence.INFERRED, True
        if not heat.trains and self._evaluator.gradients.is_volatile(
            self._evaluator.definitions.enclosing_function(node)
        ):
            return None
        if part is None and not heat.trains and self.evaluated.gives(value, heat.root):
            return Evidence.INFERRED, True
        found = unpack(self._evaluator.value(value), () if part is None else (part,))
        if not found.is_tensor or found.graph is not Graph.ATTACHED:
            return None
        if self._backward.is_detached_item(value, heat.root):
            return None
        trainer = heat.root if self._tree.within(node, heat.root) else None  # a helper is judged by the whole file
        if trainer is None and self._is_parameter(value):
            return None  # the call that gives it says more
        differentiated = self._backward.losses(trainer) if trainer is not None else self._backward.passes()
        if heat.trains and self._is_fresh(value) and differentiated:
            return (found.evidence, True) if found.evidence >= Evidence.INFERRED else None
        if heat.role is not Role.EVALUATION_LOOP:
            return None
        function = self._evaluator.definitions.enclosing_function(node)
        if function is not None and self._is_called_elsewhere(function):
            return None
        if self._inference.fed_passes.by(function, collected=True):
            return None
        if self._evaluator.gradients.left_open(node) or self._is_left_open(value):
            return None
        frame: cst.CSTNode = function if function is not None else self._tree.module
        evaluates = self._inference.routine_evaluates(function)
        if found.evidence < Evidence.INFERRED and not (evaluates and found.origin in (Origin.LOSS, Origin.OUTPUT)):
            return None
        evidence = max(found.evidence, Evidence.INFERRED) if self._takes_graph(value) else found.evidence
        return evidence, not self._backward.passes(frame)

    def _is_left_open(self, value: cst.BaseExpression) -> bool:
        """Whether a value comes from a function of the file that may have computed it without gradients."""
        made = [value] if isinstance(value, cst.Call) else [each.value for each in self._bindings(value)]
        return any(isinstance(call, cst.Call) and left_open_for(call, self._evaluator) for call in made)

    def _bindings(self, value: cst.BaseExpression) -> Sequence[Binding]:
        return self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else ()

    def _is_known(self, value: cst.BaseExpression) -> bool:
        """Whether it is known of a value that it is no tensor, or whether it has a graph."""
        known = self._evaluator.value(value)
        return known.known and (not known.is_tensor or known.graph is not Graph.UNKNOWN)

    def _is_handed(self, value: cst.BaseExpression) -> bool:
        """Whether a function is given a loss by steps of the file; not where what is known of a call says so there."""
        if not self.handed.is_one(value):
            return False
        function = self._evaluator.definitions.enclosing_function(value)
        calls = self._evaluator.callers(function) if function is not None else []
        return not any(self._meters.given(call) is not None for call in calls)

    def _is_given_in_record(self, value: cst.BaseExpression) -> bool:
        """Whether a function takes a value out of a dictionary of losses that steps of the file give it."""
        return any(map(self._is_loss_at_calls, self.records.given(value)))

    def _is_item(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether a loop takes a value out of a dictionary of losses that a step, or a function of it, differentiates.

        ``for name, loss in self.train_step(batch).items()``, by a variable
        """
        records = self.records.iterated(value)
        made = [(record, root) for record in records]
        made += [found for record in records if (found := self.records.returned(record)) is not None]
        return any(
            self.records.holds_loss(name, self._backward.losses(where)) and not self._has_numbers(name)
            for name, where in made
        )

    def _is_beside_loss(self, value: cst.BaseExpression) -> bool:
        """Whether a loop leaves out items of a dictionary that it names: ``if name != "loss": ...``."""
        loop, test = self._tree.enclosing(value, cst.For), self._tree.enclosing(value, cst.If)
        if not isinstance(loop, cst.For) or test is None or not self._tree.within(test, loop.body):
            return False
        bound = {name.value for name, _ in targets(loop.target)}
        named = {name.value for name in self._tree.below(value, cst.Name)}
        if method_call(loop.iter, "items") is None or bound.isdisjoint(named):
            return False
        asked = (c for c in self._tree.below(test.test, cst.Comparison) if identifier(c.left) in bound)
        left_out = (each.comparisons[0] for each in asked)
        return any(isinstance(each.operator, (cst.NotEqual, cst.NotIn)) and self._names_loss(each) for each in left_out)

    def _names_loss(self, compared: cst.ComparisonTarget) -> bool:
        """Whether a comparison is with the name of what is differentiated: ``"loss"``, ``("total", "loss")``."""
        texts = self._tree.below(compared, cst.SimpleString)
        return any(_LOSS_KEY.search(str(literal(text)).lower()) for text in texts)

    def _has_numbers(self, record: cst.Name) -> bool:
        """Whether a dictionary is written out with what may be a number, which has nothing to detach."""
        made = self.records.origin(record)
        return made is not None and not all(self._evaluator.value(each).is_tensor for each in elements(made))

    def _is_changed_at_calls(self, record: Binding) -> bool:
        """Whether a call gives a dictionary into which a method has put something else: ``losses.update(numbers)``."""
        given = (each for each in passed_for(record, self._evaluator) if isinstance(each, cst.Name))
        return any(map(self.records.is_changed, given))

    def _is_loss_at_calls(self, record: Binding) -> bool:
        """Whether all calls with gradients give a parameter a dictionary of which a loss is differentiated there."""
        given = [each for each in passed_for(record, self._evaluator) if not self._evaluator.gradients.disabled(each)]
        around = [self._tree.enclosing(each, *LOOPS) or self._tree.module for each in given]
        return bool(given) and all(map(self._is_record_of_losses, given, around))

    def _is_record_of_losses(self, record: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether a dictionary holds losses that a step differentiates, by its name or written out."""
        items = elements(record) if isinstance(record, cst.Dict) else ()
        if items and not any(map(is_number, items)):
            return any(self._backward.differentiates(each, root) for each in items)
        return self.records.holds_loss(record, self._backward.losses(root)) or self._holds_beside(record, root)

    def holds_loss(self, value: cst.BaseExpression, kept: Store, heat: Heat) -> bool:
        """Whether a dictionary is kept whole of losses that a training step differentiates, or of a model's outputs."""
        if not kept.is_stored or kept.by_method or kept.part is not None or not heat.trains:
            return False
        losses = self._backward.losses(heat.root)
        if self.records.holds_loss(value, losses) or (losses and self._holds_graphs(value, heat.root)):
            return True
        return self._holds_beside(value, heat.root) or self._is_handed_to_trainer(value, losses)

    def _is_handed_to_trainer(self, record: cst.BaseExpression, losses: list[cst.BaseExpression]) -> bool:
        """Whether a dictionary is also what the step gives its trainer, with a tensor in it that carries a graph."""
        if not isinstance(record, cst.Name) or not any(self.records.is_one(loss, record) for loss in losses):
            return False
        made = self.records.origin(record)
        held = (self._evaluator.value(each) for each in (elements(made) if made is not None else ()))
        return any(v.is_tensor and v.graph is Graph.ATTACHED and v.evidence >= Evidence.INFERRED for v in held)

    def _holds_beside(self, record: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether what a pass through ``root`` writes into a dictionary, or returns beside it, is differentiated."""
        items = (item for item in self.records.items(record, root) if not is_number(item))
        return any(self._backward.differentiates(item, root) for item in items)

    def _holds_graphs(self, record: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether all items of a dictionary that each pass through ``root`` makes are tensors with a graph."""
        definitions = self._bindings(record)
        is_made_here = len(definitions) == 1 and self._tree.within(definitions[0].node, root)
        if not is_made_here or not isinstance(record, cst.Name) or self.records.may_lose_graph(record):
            return False
        found = item = self._evaluator.value(record)
        while item.kind is Kind.MAPPING and item.element is not None:
            item = item.element
        carries = item.is_tensor and item.graph is Graph.ATTACHED and item.evidence >= Evidence.INFERRED
        return found.kind is Kind.MAPPING and carries

    def _is_fresh(self, value: cst.BaseExpression) -> bool:
        """Whether a value is known by itself: an item or attribute may have been detached where it is held."""
        if not isinstance(value, cst.Attribute) or not isinstance(value.value, cst.Name):
            record = value.value if isinstance(value, cst.Subscript) else None
            if isinstance(record, cst.Name) and self._is_made_of_call(record):
                return not self.records.may_lose_graph(record)
            return isinstance(value, _FRESH) or self._backward.is_item_in_turn(value)
        owner = self._evaluator.definitions.receiver(value.value)
        made = self._evaluator.definitions.attribute(owner, value.attr.value) if owner is not None else []
        return bool(made) and all(isinstance(each.value, _FRESH) and not each.path for each in made)

    def _is_made_of_call(self, record: cst.Name) -> bool:
        """Whether a variable holds just what one call gives, as the outputs of a model."""
        definitions = self._bindings(record)
        return len(definitions) == 1 and isinstance(definitions[0].value, cst.Call) and not definitions[0].path

    def _is_called_elsewhere(self, function: cst.FunctionDef) -> bool:
        """Whether only other code calls a method of a model, which may have switched gradients off."""
        owner = self._evaluator.definitions.owner(function)
        is_of_module = owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE
        return is_of_module and not self._evaluator.callers(function)

    def _is_parameter(self, value: cst.BaseExpression) -> bool:
        """Whether a function is given a value, or the tensors from which it computes it: ``value * n``."""
        if isinstance(value, cst.BinaryOperation):
            tensors = [part for part in (value.left, value.right) if self._evaluator.value(part).is_tensor]
            return bool(tensors) and all(map(self._is_parameter, tensors))
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else ()
        return any(binding.kind is BindingKind.PARAMETER for binding in bindings)

    def _takes_graph(self, value: cst.BaseExpression) -> bool:
        """Whether a call takes tensors that certainly carry a graph: then what is named a criterion is one."""
        if not isinstance(value, cst.Call):
            return False
        given = [self._evaluator.value(argument.value) for argument in value.args]
        return any(g.is_tensor and g.graph is Graph.ATTACHED and g.evidence >= Evidence.INFERRED for g in given)

    def _is_mapping(self, value: cst.BaseExpression) -> bool:
        """Whether a variable holds losses by name."""
        told = self._evaluator.usage.attributes(value) & {"values", "items", "keys", "update", "append"}
        if told != {"append"}:
            return bool(told)
        found = self._evaluator.value(value)  # a list of losses may become their sum
        return not (found.is_tensor and found.evidence >= Evidence.INFERRED)


def is_number(value: cst.BaseExpression) -> bool:
    """Return whether a value is a number by how it is written: a count, or what is read of a tensor."""
    if isinstance(value, (cst.Name, cst.Attribute)) and _COUNTS.search(identifier(value)):
        return True
    if isinstance(value, (cst.BaseNumber, cst.BaseString, cst.Comparison)):
        return True
    return method_call(value, "item", "detach", "tolist", "size", "numpy") is not None
