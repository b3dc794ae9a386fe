"""What metrics of Ignite keep of the predictions that they are given: with their graph, if a trainer gives them."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.stores import Store, appended, container
from torchlint.semantics.values import Graph
from torchlint.syntax.calls import identifier, method_call

_UPDATE = "update"
_OWN = "_update"
"""What metrics of a library call from ``update``, for classes that derive from them."""

_IGNITE = ("ignite.metrics.", "ignite.contrib.metrics.")
_EVALUATOR = "create_supervised_evaluator"
_ENGINE = "ignite.engine.Engine"
_ATTACH = "attach"
_SAME = ("to", "float", "cpu", "contiguous")
"""Methods that may give the very tensor that they are called on."""

_MAX_DEPTH = 12


class MetricStates:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @cached_property
    def occur(self) -> bool:
        """Whether the file defines a method that can update a metric."""
        return any(function.name.value in (_UPDATE, _OWN) for function in self._evaluator.tree.nodes(cst.FunctionDef))

    def kept(self, call: cst.Call) -> Store | None:
        """Return the prediction that ``self.predictions.append(y_pred)`` in a metric's ``update(output)`` keeps.

        Ignite calls ``update`` without gradients, so that what it computes carries none; the prediction itself does.
        """
        found = appended(call)
        if found is None or not self._is_of_object(found.variable):
            return None
        function = self._evaluator.definitions.enclosing_function(call)
        if function is None or not self._updates_metric(function):
            return None
        carrying = tuple(value for value in found.values if self._is_prediction(value, function, 0))
        return Store(found.variable, carrying, found.is_stored) if carrying else None

    def _is_of_object(self, variable: cst.BaseExpression) -> bool:
        variable = container(variable) or variable
        held = variable.value if isinstance(variable, cst.Attribute) else None
        return isinstance(held, cst.Name) and self._evaluator.definitions.receiver(held) is not None

    def _updates_metric(self, function: cst.FunctionDef) -> bool:
        """Whether a method is ``update(self, output)`` of a metric of Ignite."""
        definitions = self._evaluator.definitions
        owner = definitions.owner(function)
        if owner is None or len(function.params.params) != 2:
            return False
        if function.name.value != _UPDATE and not (function.name.value == _OWN and self._is_called_by_update(function)):
            return False
        return any(name.startswith(_IGNITE) for name in definitions.ancestry(owner)) and not self._only_evaluates(owner)

    def _is_called_by_update(self, function: cst.FunctionDef) -> bool:
        """Whether ``update`` of a class of the file hands on to a method what it is given."""
        definitions = self._evaluator.definitions
        for call in self._evaluator.tree.nodes(cst.Call):
            caller = definitions.enclosing_function(call) if method_call(call, _OWN) is not None else None
            if caller is not None and caller.name.value == _UPDATE and len(call.args) == 1:
                given = call.args[0].value
                parts = given.elements[:1] if isinstance(given, cst.Tuple) else ()
                return self._is_output(given, caller) or any(self._is_prediction(p.value, caller, 0) for p in parts)
        return False

    def _only_evaluates(self, owner: cst.ClassDef) -> bool:
        """Whether the file gives all metrics of a class to evaluators, which compute without gradients."""
        definitions, tree = self._evaluator.definitions, self._evaluator.tree
        made = [call for call in tree.nodes(cst.Call) if definitions.definition(call.func) is owner]
        return bool(made) and all(map(self._is_for_evaluator, made))

    def _is_for_evaluator(self, made: cst.Call) -> bool:
        """Whether a metric is made in the call that makes an evaluator, or in a variable only given to such ones."""
        tree = self._evaluator.tree
        around = [ancestor for ancestor in tree.ancestors(made) if isinstance(ancestor, cst.Call)]
        if any(identifier(call.func) == _EVALUATOR for call in around):
            return True
        attach = tree.parent(tree.parent(made) or made)
        if isinstance(attach, cst.Call) and method_call(attach, _ATTACH) is not None:
            return self._attaches(attach)
        line = tree.enclosing(made, cst.Assign)
        target = line.targets[0].target if isinstance(line, cst.Assign) and len(line.targets) == 1 else None
        uses = [name for name in tree.named(target.value) if name is not target] if isinstance(target, cst.Name) else []
        reads = [use for use in uses if any(b.node is target for b in self._evaluator.flow.definitions(use))]
        return bool(reads) and all(map(self._is_used_by_evaluator, reads))

    def _is_used_by_evaluator(self, read: cst.Name) -> bool:
        """Whether a use of a metric, or of a mapping of such, gives it to evaluators."""
        tree = self._evaluator.tree
        parent = tree.parent(read)
        above = tree.parent(parent) if parent is not None else None
        if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
            return identifier(above.func) == _EVALUATOR
        if isinstance(parent, cst.Attribute) and parent.attr.value == _ATTACH and isinstance(above, cst.Call):
            return self._attaches(above)
        return self._is_looped(parent, above)

    def _is_looped(self, items: cst.CSTNode | None, call: cst.CSTNode | None) -> bool:
        """Whether ``for name, metric in metrics.items():`` does nothing with the metrics but attach them."""
        loop = self._evaluator.tree.parent(call) if call is not None else None
        is_items = isinstance(items, cst.Attribute) and items.attr.value in ("items", "values")
        if not is_items or not isinstance(loop, cst.For):
            return False
        attached = [c for c in self._evaluator.tree.below(loop.body, cst.Call) if method_call(c, _ATTACH) is not None]
        return len(loop.body.body) == 1 and bool(attached) and all(map(self._attaches, attached))

    def _attaches(self, attach: cst.Call) -> bool:
        """Whether a metric is attached to an evaluator: one made as such, or an engine whose step has no gradients."""
        engine = attach.args[0].value if attach.args else None
        bindings = self._evaluator.flow.definitions(engine) if isinstance(engine, cst.Name) else []
        made = [binding.part for binding in bindings]
        return bool(made) and all(isinstance(call, cst.Call) and self._is_evaluator(call) for call in made)

    def _is_evaluator(self, made: cst.Call) -> bool:
        """Whether a call makes an engine that computes without gradients."""
        if identifier(made.func) == _EVALUATOR:
            return True
        if self._evaluator.names.qualified(made.func) != _ENGINE or not made.args:
            return False
        step = self._evaluator.definitions.definition(made.args[0].value)
        results = self._evaluator.definitions.results(step) if isinstance(step, cst.FunctionDef) else []
        return bool(results) and all(map(self._has_no_graph, results))

    def _has_no_graph(self, result: cst.BaseExpression) -> bool:
        """Whether what the step of an engine gives, of which the prediction is the first, is computed without one."""
        given = self._evaluator.value(result)
        return self._evaluator.gradients.disabled(result) or given.item(0).graph is Graph.DETACHED

    def _is_prediction(self, value: cst.BaseExpression, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a value may be the prediction: ``y_pred``, ``y_pred.to("cpu")``, which may be the same tensor."""
        moved = method_call(value, *_SAME)
        if moved is not None:
            return self._is_prediction(moved.value, function, depth)
        if isinstance(value, cst.Subscript):
            return self._is_output(value.value, function) and _is_zero(value)
        if not isinstance(value, cst.Name) or depth > _MAX_DEPTH:
            return False
        bindings = self._evaluator.flow.definitions(value)
        return any(self._binds_prediction(binding, function, depth + 1) for binding in bindings)

    def _binds_prediction(self, binding: Binding, function: cst.FunctionDef, depth: int) -> bool:
        if binding.kind is BindingKind.PARAMETER or binding.value is None:
            return False
        if binding.path:
            return binding.path == (0,) and self._is_output(binding.value, function)
        return self._is_prediction(binding.value, function, depth)

    def _is_output(self, expression: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        return len(bindings) == 1 and bindings[0].node is function.params.params[1].name


def _is_zero(part: cst.Subscript) -> bool:
    index = part.slice[0].slice if len(part.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) and index.value.value == "0"
