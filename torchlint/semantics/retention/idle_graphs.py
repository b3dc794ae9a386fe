"""What objects keep with graphs for nothing: all that reads it reads it without them."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.fates import Fate
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.retention.conditions import tests_before
from torchlint.semantics.retention.input_graphs import InputGraphs
from torchlint.semantics.retention.kept_fates import KeptFates
from torchlint.semantics.retention.running_statistics import observes
from torchlint.semantics.retention.statements import Statements
from torchlint.semantics.retention.stores import Store, container
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import bind, identifier, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered
from torchlint.syntax.walk import Tree

_LOSS = re.compile(r"(^|_)loss(es)?$")
_HOOKS = frozenset(("register_forward_hook", "register_module_forward_hook"))


class IdleGraphs:
    """Finds it, where the file shows that what is kept carries a graph."""

    def __init__(self, evaluator: Evaluator, statements: Statements, backward: Backward) -> None:
        self._evaluator = evaluator
        self._backward = backward
        self._statements = statements
        self._tree = evaluator.tree
        self._definitions = evaluator.definitions
        self._input_graphs = InputGraphs(evaluator)
        self._fates = KeptFates(evaluator)

    @cached_property
    def occur(self) -> bool:
        """Whether the file differentiates or detaches anything, or looks into models as they train."""
        names = (each.attr.value for each in self._tree.nodes(cst.Attribute))
        return bool(self._backward.passes()) or any(name == "detach" or name in _HOOKS for name in names)

    @remembered
    def kept(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Store | None:
        """Return what ``self.bank.append(features)`` keeps, where only ``past.detach()`` is read of ``self.bank``."""
        found = self._statements.kept(node) if self.occur else None
        held = _attribute(found.variable) if found is not None else None
        method = self._definitions.enclosing_function(node)
        if found is None or method is None or held is None or not isinstance(held.value, cst.Name):
            return None
        if found.by_method or (isinstance(node, cst.Assign) and found.index is not None):
            return None
        owner = self._definitions.receiver(held.value)
        if owner is None or (isinstance(node, cst.Assign) and self._is_module(owner)):
            return None  # running statistics are looked for by themselves
        if (
            observes(owner, self._tree)
            or self._evaluator.gradients.disabled(node)
            or self._evaluator.gradients.left_open(node)
        ):
            return None
        carrying = tuple(value for value in found.values if self._carries(value, method, owner))
        if not carrying or self._is_remade(held, method, node) or self._fates.held(held) is not Fate.VALUES:
            return None  # what the file never reads, others may
        return Store(found.variable, carrying, found.is_stored) if self._is_known(held, node, method) else None

    def _is_remade(self, held: cst.Attribute, method: cst.FunctionDef, node: cst.CSTNode) -> bool:
        """Whether what keeps something, or what calls it on the same object, also starts the attribute anew."""
        callers = (self._definitions.enclosing_function(call) for call in self._evaluator.callers(method))
        for function in (method, *callers):
            if function is None or function.name.value == "__init__":
                continue
            targets = self._tree.below(function.body, cst.AssignTarget)
            if any(is_same(t.target, held) and self._tree.parent(t) is not node for t in targets):
                return True
            clears = (method_call(call, "clear") for call in self._tree.below(function.body, cst.Call))
            if any(clear is not None and is_same(clear.value, held) for clear in clears):
                return True
        return False

    # What shows that there is a graph

    def _carries(self, value: cst.BaseExpression, method: cst.FunctionDef, owner: cst.ClassDef) -> bool:
        """Whether a value is computed of a module's input or output, or of what the file gives with a graph."""
        if self._is_term(value, method):
            return True
        if not self._input_graphs.follows(value, method):
            return False
        if self._is_hook(method) or self._is_module(owner):
            return True
        return self._is_handed(value, method)

    def _is_term(self, value: cst.BaseExpression, method: cst.FunctionDef) -> bool:
        """Whether a method returns a value, and every call in the file adds that to what it differentiates."""
        returned = [r.value for r in self._tree.below(method.body, cst.Return)]
        if not isinstance(value, cst.Name) or not all(isinstance(r, cst.Name) for r in returned):
            return False
        calls = self._evaluator.callers(method)
        is_same_value = returned and all(is_same(r, value) for r in returned if r is not None)
        return bool(is_same_value and calls) and all(map(self._is_differentiated, calls))

    def _is_differentiated(self, call: cst.Call) -> bool:
        node: cst.CSTNode = call
        parent = self._tree.parent(node)
        while isinstance(parent, cst.BinaryOperation):
            node, parent = parent, self._tree.parent(parent)
        target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
        frame = self._definitions.enclosing_function(call) or self._tree.module
        return isinstance(target, cst.Name) and self._backward.differentiates(target, frame)

    def _is_handed(self, value: cst.BaseExpression, method: cst.FunctionDef) -> bool:
        """Whether every call in the file gives a method what carries a graph for what it keeps."""
        own = [parameter.name.value for parameter in parameters(method)][1:]
        taken = {name.value for name in _names(value, self._tree)}.intersection(own) or own
        calls = self._evaluator.callers(method)
        given = [[v for name, v in bind(call.args, own).named.items() if name in taken] for call in calls]
        pairs = zip(calls, given, strict=True)
        return bool(given) and all(any(self._has_graph(value, call) for value in values) for call, values in pairs)

    def _has_graph(self, value: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a call hands over what is known to carry a graph, or what a forward pass computes of its input."""
        if self._evaluator.gradients.disabled(call) or self._evaluator.gradients.left_open(call):
            return False
        found = self._evaluator.value(value)
        if found.is_tensor and found.graph is Graph.ATTACHED and found.evidence >= Evidence.INFERRED:
            return True
        method = self._definitions.enclosing_function(call)
        owner = self._definitions.owner(method) if method is not None else None
        if method is None or owner is None or method.name.value != "forward":
            is_open = not found.known or (found.is_tensor and found.graph is Graph.UNKNOWN)
            return is_open and self._is_argument(value)
        return self._is_module(owner) and self._input_graphs.follows(value, method)

    def _is_argument(self, value: cst.BaseExpression) -> bool:
        """Whether a function hands over what it is given: an output that others computed with gradients."""
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        return [binding.kind for binding in bindings] == [BindingKind.PARAMETER]

    def _is_module(self, owner: cst.ClassDef) -> bool:
        return self._definitions.class_kind(owner) is Kind.MODULE

    @cached_property
    def _hooks(self) -> frozenset[str]:
        """The names of what the file registers as hooks of forward passes, or of the methods that make them."""
        calls = (call for call in self._tree.nodes(cst.Call) if identifier(call.func) in _HOOKS and call.args)
        given = (call.args[0].value for call in calls)
        return frozenset(identifier(hook.func if isinstance(hook, cst.Call) else hook) for hook in given)

    def _is_hook(self, function: cst.FunctionDef) -> bool:
        maker = self._definitions.enclosing_function(function)
        return function.name.value in self._hooks or (maker is not None and maker.name.value in self._hooks)

    def _is_known(self, held: cst.Attribute, node: cst.CSTNode, method: cst.FunctionDef) -> bool:
        """Whether the file knows of the graph: it cuts off what it reads, or a hook keeps it in training only."""
        if any(self._is_term(name, method) for name in self._tree.below(node, cst.Name)):
            return True
        if method.name.value == "forward" and any(_LOSS.search(name.value) for name in self._given(node, method)):
            return True
        if self._is_hook(method) and any(map(self._asks_for_training, tests_before(node, self._tree))):
            return True
        return self._fates.is_cut(held)

    def _given(self, node: cst.CSTNode, method: cst.FunctionDef) -> list[cst.Name]:
        """The arguments of a method that a statement names."""
        own = {parameter.name.value for parameter in parameters(method)[1:]}
        return [name for name in self._tree.below(node, cst.Name) if name.value in own]

    def _asks_for_training(self, test: cst.BaseExpression) -> bool:
        asked = (*self._tree.below(test, cst.Attribute), test)
        return any(identifier(each) == "training" for each in asked if isinstance(each, cst.Attribute))


def _attribute(place: cst.BaseExpression) -> cst.Attribute | None:
    """Return the attribute that a value is put into: ``self.samples`` of ``self.samples[name]``."""
    while (holder := container(place)) is not None:
        place = holder
    return place if isinstance(place, cst.Attribute) else None


def _names(value: cst.BaseExpression, tree: Tree) -> list[cst.Name]:
    return [*tree.below(value, cst.Name), *([value] if isinstance(value, cst.Name) else [])]
