"""What objects keep with graphs for nothing: all that reads it reads it without them."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.fates import Fate
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.retention.conditions import tests_before
from torchlint.semantics.retention.holders import Holders
from torchlint.semantics.retention.input_graphs import InputGraphs
from torchlint.semantics.retention.kept_fates import KeptFates
from torchlint.semantics.retention.running_statistics import observes
from torchlint.semantics.retention.statements import Statements
from torchlint.semantics.retention.stores import Store, appended, container
from torchlint.semantics.tables.container_methods import ADDS_TO_LIST, APPENDS
from torchlint.semantics.training.phases import in_evaluation, in_training
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered
from torchlint.syntax.walk import Tree

_MOST_CALLS = 3
"""Through how many variables, and calls, a value is followed to what it is computed of."""

# What has no graph by its name: inputs of networks, whole numbers, what an environment or a slower network gives.
_WITHOUT = re.compile(
    r"(^|_)(k|keys?|ema|momentum|teacher|old|targets?|labels?|y|states?|obs|observations?|actions?|rewards?|dones?|"
    r"masks?|ids?|index|indexes|indices|batch|inputs?|images?|img|data|frames?|tokens?|val|valid|test|epoch|step|gt|truth|"
    r"noise|sigmas?|t|times?|timesteps?|lengths?|lens?|sizes?|weights?|avg|mean|"
    r"ref|reference|hr|lr|depth|real|wave|waveform|wav|audio|speech|adj|adjacency|returns?|advantages?|prices?)(_|$)"
)
_TUPLES = frozenset("chunk split unbind topk sort svd eigh qr max min median mode kthvalue histogram unique".split())
_LAYERS = re.compile(r"torch\.nn\.(Linear|Bilinear|Conv\w+|Embedding\w*)$")  # which give one tensor
_FREEZES = frozenset(("requires_grad", "requires_grad_"))
_LOSS = re.compile(r"(^|_)loss(es)?$")
_HOOKS = frozenset(("register_forward_hook", "register_module_forward_hook"))


class IdleGraphs:
    """Finds it, where the file shows that what is kept carries a graph."""

    def __init__(self, evaluator: Evaluator, statements: Statements, backward: Backward, holders: Holders) -> None:
        self._evaluator = evaluator
        self._holders = holders
        self._backward = backward
        self._statements = statements
        self._tree = evaluator.tree
        self._definitions = evaluator.definitions
        self._input_graphs = InputGraphs(evaluator)
        self._own_graphs = InputGraphs(evaluator, _WITHOUT)
        self._fates = KeptFates(evaluator)

    @cached_property
    def occur(self) -> bool:
        """Whether the file differentiates or detaches anything, or looks into models as they train."""
        names = (each.attr.value for each in self._tree.nodes(cst.Attribute))
        return bool(self._backward.passes()) or any(name == "detach" or name in _HOOKS for name in names)

    @remembered
    def kept(self, node: cst.AugAssign | cst.Assign | cst.Call) -> Store | None:
        """Return what ``self.bank.append(features)`` keeps, where only ``past.detach()`` is read of ``self.bank``."""
        found = self._statements.kept(node) if self.occur and _may_keep(node) else None
        held = _attribute(found.variable) if found is not None else None
        method = self._definitions.enclosing_function(node)
        if found is None or method is None or held is None or not isinstance(held.value, cst.Name):
            return None
        if found.by_method or (
            isinstance(node, cst.Assign) and found.index is not None and not self._pools(held, method)
        ):
            return None
        owner = self._definitions.receiver(held.value)
        if owner is None or (isinstance(node, cst.Assign) and found.index is None and self._is_module(owner)):
            return None  # running statistics are looked for by themselves
        if not self._may_grow(held, owner, node):
            return None
        carrying = tuple(value for value in found.values if self._carries(value, node, method, owner))
        told = self._fates.held(held, _part(node, carrying)) if carrying else None
        if told is None or told.fate is not Fate.VALUES:
            return None  # what the file never reads, others may
        is_known = told.is_cut or self._is_known(node, method)
        return Store(found.variable, carrying, found.is_stored) if is_known else None

    def _pools(self, held: cst.Attribute, method: cst.FunctionDef) -> bool:
        """Whether a method that puts something in place of another fills the same list with graphs otherwise."""
        calls = ((call, appended(call)) for call in self._tree.below(method.body, cst.Call))
        filling = (call for call, found in calls if found is not None and is_same(found.variable, held))
        return any(self.kept(call) is not None for call in filling)

    # Whether it grows from step to step

    def _may_grow(self, held: cst.Attribute, owner: cst.ClassDef, node: cst.CSTNode) -> bool:
        """Whether an attribute of an object goes on from step to step, and its graphs are recorded."""
        gradients = self._evaluator.gradients
        if self._observes(owner) or gradients.disabled(node) or gradients.left_open(node):
            return False
        tests = tests_before(node, self._tree)
        if any(self._mentions(test, "is_grad_enabled", "requires_grad") for test in tests):
            return False
        is_first_only = any(is_same(each, held) for test in tests for each in self._tree.below(test, cst.Attribute))
        if is_first_only and not self._is_replaced(held):
            return False
        if self.is_short_lived(owner) or in_evaluation(
            node, self._definitions.enclosing_function(node) or owner, self._tree
        ):
            return False
        made = self._definitions.attribute(owner, held.attr.value)
        if any(self._is_given_or_short(each.value) for each in made) or held.attr.value in self._texts:
            return False
        return not self._holders.starts_anew(held, node)

    @remembered
    def _observes(self, owner: cst.ClassDef) -> bool:
        """Whether a class keeps what an environment gives, or freezes a network itself."""
        freezes = any(each.attr.value in _FREEZES for each in self._tree.below(owner, cst.Attribute))
        return freezes or observes(owner, self._tree)

    @remembered
    def is_short_lived(self, owner: cst.ClassDef) -> bool:
        """Return whether the file makes such objects anew in each step, or in any loop or forward pass."""
        maker = self._definitions.method(owner, "__init__")
        calls = self._evaluator.callers(maker) if maker is not None else []
        if calls and all(map(self._is_of_one_call, calls)):
            return True
        for call in calls:
            around = self._tree.enclosing(call, *LOOPS, cst.FunctionDef)
            if isinstance(around, LOOPS) or self._holders.is_hot(call):
                return True
            if isinstance(around, cst.FunctionDef) and around.name.value in ("forward", "__call__"):
                return True
        return False

    def _is_of_one_call(self, made: cst.Call) -> bool:
        """Whether an object is a variable of a function that takes no steps, and stays there."""
        function, statement = self._definitions.enclosing_function(made), self._tree.parent(made)
        if function is None or not isinstance(statement, cst.Assign):
            return False
        if any(isinstance(node, LOOPS) for node in self._tree.descendants(function.body)):
            return False
        names = [target.target.value for target in statement.targets if isinstance(target.target, cst.Name)]
        given = (a.value for a in self._tree.below(function.body, cst.Arg) if isinstance(a.value, cst.Name))
        return len(names) == len(statement.targets) and not any(each.value in names for each in given)

    def _is_replaced(self, held: cst.Attribute) -> bool:
        """Whether a pool puts what is new in place of what is old."""
        places = (target.target for target in self._tree.nodes(cst.AssignTarget))
        return any(isinstance(place, cst.Subscript) and is_same(place.value, held) for place in places)

    def _is_given_or_short(self, made: cst.CSTNode | None) -> bool:
        """Whether an object holds what it was given, of which others know, or the last value only."""
        if isinstance(made, cst.Call) and identifier(made.func) == "deque":
            return literal(bind(made.args, ("iterable", "maxlen")).get("maxlen")) == 1
        bindings = self._evaluator.flow.definitions(made) if isinstance(made, cst.Name) else []
        return any(binding.kind is BindingKind.PARAMETER for binding in bindings)

    @cached_property
    def _texts(self) -> frozenset[object]:
        """The texts of the file: by them it may ask for attributes, ``getattr(module, "losses", ())``."""
        return frozenset(map(literal, self._tree.nodes(cst.SimpleString)))

    def _mentions(self, test: cst.BaseExpression, *names: str) -> bool:
        asked = (*self._tree.below(test, cst.Attribute), test)
        return any(identifier(each) in names for each in asked if isinstance(each, cst.Attribute))

    # What shows that there is a graph

    def _carries(
        self, value: cst.BaseExpression, node: cst.CSTNode, method: cst.FunctionDef, owner: cst.ClassDef
    ) -> bool:
        """Whether a value is computed of a module's input or output, or of what the file gives with a graph."""
        if self._is_term(value, method):
            return True
        if not self._input_graphs.follows(value, method):
            return False
        if self._is_hook(method):
            return self._is_computed(value) and self._is_of_training(node) and not self._is_of_input(node, method)
        if self._is_module(owner) and not self._calls(method):
            is_tensor = self._is_computed(value) or self._is_of_loss(value, method)
            return is_tensor and self._own_graphs.follows(value, method)
        return self._is_handed(value, method)

    def _is_of_input(self, node: cst.CSTNode, hook: cst.FunctionDef) -> bool:
        """Whether a hook keeps something of what its module is given: that of the first one is the data."""
        given = parameters(hook)[-2:-1]  # the one before the output
        return any(name.value == each.name.value for each in given for name in self._tree.below(node, cst.Name))

    def _is_computed(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value is the result of operations, which is a tensor; what a function is given may be anything."""
        if isinstance(value, cst.Name) and depth < _MOST_CALLS:
            made = self._evaluator.flow.definitions(value)
            return bool(made) and all(
                binding.kind is BindingKind.ASSIGNMENT
                and isinstance(binding.value, cst.BaseExpression)
                and self._is_computed(binding.part or binding.value, depth + 1)
                for binding in made
            )
        if isinstance(value, cst.Subscript):
            return self._is_computed(value.value, depth)
        if isinstance(value, cst.IfExp):
            return self._is_computed(value.body, depth) or self._is_computed(value.orelse, depth)
        if isinstance(value, cst.Call):
            library = (self._evaluator.names.qualified(value.func) or "").rpartition(".")[0]
            is_tuple = identifier(value.func) in _TUPLES or library.startswith("torch.distributions")
            run = self._evaluator.value(value.func)
            return not is_tuple and (run.kind is not Kind.MODULE or _LAYERS.match(run.name or "") is not None)
        return isinstance(value, cst.BinaryOperation)

    def _is_of_loss(self, value: cst.BaseExpression, method: cst.FunctionDef) -> bool:
        """Whether a forward pass that others call keeps one of the losses, or a tensor, that it computes its own of."""
        held = value.value if isinstance(value, cst.Subscript) else value
        if method.name.value != "forward" or not self._is_argument(held) or self._evaluator.callers(method):
            return False
        if held is not value:
            return _LOSS.search(identifier(held)) is not None
        return self._is_operand(value, method) and _WITHOUT.search(identifier(value)) is None

    def _is_operand(self, value: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Whether a function computes with a value as with a tensor."""
        operations = self._tree.below(function.body, cst.BinaryOperation)
        return any(is_same(side, value) for each in operations for side in (each.left, each.right))

    def _is_of_training(self, node: cst.CSTNode) -> bool:
        """Whether a hook runs something only where its module trains."""
        return in_training(node, self._definitions.enclosing_function(node) or self._tree.module, self._tree)

    def _is_term(self, value: cst.BaseExpression, method: cst.FunctionDef) -> bool:
        """Whether a method returns a value, and every call in the file adds that to what it differentiates."""
        returned = [r.value for r in self._tree.below(method.body, cst.Return)]
        if not isinstance(value, cst.Name) or not all(isinstance(r, cst.Name) for r in returned):
            return False
        calls = self._evaluator.callers(method)
        is_same_value = returned and all(r is not None and is_same(r, value) for r in returned)
        return bool(is_same_value and calls) and all(map(self._is_differentiated, calls))

    def _is_differentiated(self, call: cst.Call) -> bool:
        node: cst.CSTNode = call
        parent = self._tree.parent(node)
        while isinstance(parent, cst.BinaryOperation):
            node, parent = parent, self._tree.parent(parent)
        target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
        frame = self._definitions.enclosing_function(call) or self._tree.module
        return isinstance(target, cst.Name) and self._backward.differentiates(target, frame)

    def _is_handed(self, value: cst.BaseExpression, method: cst.FunctionDef, depth: int = 0) -> bool:
        """Whether every call in the file gives a method what carries a graph for what it keeps."""
        is_method = self._definitions.owner(method) is not None
        own = [parameter.name.value for parameter in parameters(method)][is_method:]
        taken = {name.value for name in _names(value, self._tree)}.intersection(own) or (own if depth == 0 else ())
        calls = self._calls(method)
        given = [[v for name, v in bind(call.args, own).named.items() if name in taken] for call in calls]
        is_tensor = self._is_computed(value)
        return bool(given) and all(any(self._has_graph(v, depth, is_tensor) for v in values) for values in given)

    def _calls(self, method: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a method; where none is known to be, those of its name on what may be any object."""
        known = self._evaluator.callers(method)
        if known or method.name.value in ("forward", "__call__"):
            return known
        return [call for call in self._tree.calls_named(method.name.value) if method_call(call) is not None]

    def _has_graph(self, value: cst.BaseExpression, depth: int, is_tensor: bool) -> bool:
        """Whether a call hands over what is known to carry a graph, or what a forward pass computes of its input."""
        gradients, found = self._evaluator.gradients, self._evaluator.value(value)
        if gradients.disabled(value) or gradients.left_open(value) or found.graph is Graph.DETACHED:
            return False
        if found.is_tensor and found.graph is Graph.ATTACHED and found.evidence >= Evidence.INFERRED:
            return True
        method = self._definitions.enclosing_function(value)
        if method is None or (found.known and not found.is_tensor):
            return False
        if self._is_argument(value):
            if self._evaluator.callers(method):
                return depth < _MOST_CALLS and self._is_handed(value, method, depth + 1)
            is_known = found.is_tensor and found.evidence >= Evidence.INFERRED
            is_tensor = is_tensor or is_known or self._is_operand(value, method)
            return is_tensor and _WITHOUT.search(identifier(value)) is None
        owner = self._definitions.owner(method)
        is_forward = owner is not None and self._is_module(owner) and method.name.value == "forward"
        return is_forward and self._is_computed(value) and self._own_graphs.follows(value, method)

    def _is_argument(self, value: cst.BaseExpression) -> bool:
        """Whether a function hands over what it is given: an output that others computed with gradients."""
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        return [binding.kind for binding in bindings] == [BindingKind.PARAMETER]

    def _is_module(self, owner: cst.ClassDef) -> bool:
        return self._definitions.class_kind(owner) is Kind.MODULE

    @cached_property
    def _hooks(self) -> frozenset[str]:
        """The names of what the file registers as hooks of forward passes, or of the methods that make them."""
        calls = (call for call in self._tree.calls_named(*_HOOKS) if call.args)
        given = (call.args[0].value for call in calls)
        return frozenset(identifier(hook.func if isinstance(hook, cst.Call) else hook) for hook in given)

    def _is_hook(self, function: cst.FunctionDef) -> bool:
        maker = self._definitions.enclosing_function(function)
        return function.name.value in self._hooks or (maker is not None and maker.name.value in self._hooks)

    def _is_known(self, node: cst.CSTNode, method: cst.FunctionDef) -> bool:
        """Whether the file knows of the graph: what a method returns is differentiated, or a hook asks for training."""
        if any(self._is_term(name, method) for name in self._tree.below(node, cst.Name)):
            return True
        if method.name.value == "forward" and any(_LOSS.search(name.value) for name in self._given(node, method)):
            return True
        return self._is_hook(method) and self._is_of_training(node)

    def _given(self, node: cst.CSTNode, method: cst.FunctionDef) -> list[cst.Name]:
        """The arguments of a method that a statement names."""
        own = {parameter.name.value for parameter in parameters(method)[1:]}
        return [name for name in self._tree.below(node, cst.Name) if name.value in own]


def _may_keep(node: cst.AugAssign | cst.Assign | cst.Call) -> bool:
    """Return whether a statement is of a kind that keeps something in an attribute: asked first, of all of a file."""
    if isinstance(node, cst.Call):
        method = method_call(node, *ADDS_TO_LIST)
        return method is not None and _attribute(method.value) is not None
    target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    return _attribute(target) is not None


def _part(node: cst.CSTNode, carrying: tuple[cst.BaseExpression, ...]) -> int | None:
    """Return the place of the only value with a graph in a tuple that is appended: ``self.kept.append((x, y))``."""
    given = node.args[0].value if method_call(node, *APPENDS) and isinstance(node, cst.Call) else None
    if not isinstance(given, cst.Tuple) or len(carrying) > 1:
        return None
    values = [element.value for element in given.elements if isinstance(element, cst.Element)]
    return values.index(carrying[0]) if len(values) == len(given.elements) and carrying[0] in values else None


def _attribute(place: cst.BaseExpression) -> cst.Attribute | None:
    """Return the attribute that a value is put into: ``self.samples`` of ``self.samples[name]``."""
    while (holder := container(place)) is not None:
        place = holder
    return place if isinstance(place, cst.Attribute) else None


def _names(value: cst.BaseExpression, tree: Tree) -> list[cst.Name]:
    return [*tree.below(value, cst.Name), *([value] if isinstance(value, cst.Name) else [])]
