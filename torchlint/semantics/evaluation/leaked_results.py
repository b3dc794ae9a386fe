"""Results that leave a function with their graph otherwise than by ``return``: put into what its caller holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.autograd.backward import ENDS, Backward
from torchlint.semantics.binding.arguments import argument_for, parameter_for
from torchlint.semantics.binding.scopes import FUNCTIONS, BindingKind, targets
from torchlint.semantics.dataflow.kept_results import CACHES
from torchlint.semantics.evaluate import lambdas
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.handed_functions import is_put_away
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.calls import identifier, is_none, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_READS = frozenset((*ENDS, *"data shape size dim dtype device ndim numel".split()))
_TELLS = frozenset("len print str repr float int bool isinstance type id format round hash".split())
_HEAP = ("heapq.heappush", "heapq.heappushpop", "heapq.heapreplace")
_HOOKS = ("register_forward_hook", "register_module_forward_hook")
_WRITES = ("copy_", "add_", "index_copy_", "index_add_", "scatter_", "set_")
_SENDS = ("send", "emit", "publish", "notify")
# What computes numbers of what it is given, or shows it, whatever its method is called.
_MEASURES = re.compile(r"meter|metric|acc|avg|average|stat|log|writer|evaluator|confusion|bar|tracker|recorder|history")
_MOST_METHODS = 8
"""How many methods of a name that a call may run are looked into; where there are more, one of them may keep it."""

_MAX_DEPTH = 3
"""Through how many functions of the file, and callers of them, a result is followed."""


class Leak(NamedTuple):
    """A place outside of a function into which a result goes with its graph."""

    place: cst.BaseExpression
    function: cst.FunctionDef | cst.Lambda | None
    """The function that puts it there."""


class LeakedResults:
    """Follows results to such places, and asks whether anything backpropagates what they hold."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward

    def are_differentiated(self, call: cst.Call) -> bool:
        """Return whether the file backpropagates what it finds where a function has put the result of a call."""
        return any(self._is_differentiated(leak, 0) for leak in self.of(call))

    def is_read_with_graph(self, place: cst.BaseExpression) -> bool:
        """Return whether a caller differentiates what a function puts into a container that it is given."""
        function, root = self._evaluator.definitions.enclosing_function(place), place
        while isinstance(root, cst.Subscript):
            root = root.value
        is_given = isinstance(root, cst.Name) and self._parameter(root) is not None
        return is_given and self._is_differentiated(Leak(place, function), 0)

    def stay_out_of_sight(self, call: cst.Call) -> bool:
        """Return whether a result is put where the file does not show who reads it: another one may want its graph.

        What a method puts into its own object is read by methods of the object.
        """
        if not self._backward.passes():
            return False
        function = self._evaluator.definitions.enclosing_function(call)
        if self.models_keep or any(not self._is_of_object_of(function, leak.place) for leak in self.of(call)):
            return True
        return function is not None and is_put_away(function, self._evaluator)

    @cached_property
    def models_keep(self) -> bool:
        """Whether a forward pass of the file leaves something in its object, or a hook is told of what layers give."""
        if any(map(self._tree.attributes_named, _HOOKS)) or self._is_computed_once:
            return True
        forwards = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == "forward")
        for forward in forwards:
            kept = self._tree.below(forward.body, cst.AssignTarget)
            if any(self._is_of_object(t.target) and not self._is_put_without_graph(t) for t in kept):
                return True
            puts = (method_call(call, *STORES) for call in self._tree.below(forward.body, cst.Call))
            if any(put is not None and not self._is_in_hand(put.value) for put in puts):
                return True
        return False

    @cached_property
    def _is_computed_once(self) -> bool:
        """Whether a method of a model, or a function that runs one, keeps what it gives for the next time."""
        for function in self._tree.nodes(cst.FunctionDef):
            owner = self._evaluator.definitions.owner(function)
            is_of_model = owner is not None and self._evaluator.definitions.class_kind(owner) is Kind.MODULE
            named = {self._evaluator.names.qualified(_called(each.decorator)) for each in function.decorators}
            if not named.isdisjoint(CACHES) and (is_of_model or self._runs_model(function)):
                return True
            if is_of_model and function.name.value != "__init__" and any(map(self._fills, self._missing(function))):
                return True
        return False

    def _runs_model(self, function: cst.FunctionDef) -> bool:
        called = (call.func for call in self._tree.below(function.body, cst.Call))
        return any(self._evaluator.value(each).kind is Kind.MODULE for each in called)

    def _missing(self, function: cst.FunctionDef) -> Iterator[cst.If]:
        """The branches in which an attribute has no value yet: ``if self._weight is None:``."""
        for branch in self._tree.below(function.body, cst.If):
            test = branch.test
            if isinstance(test, cst.Comparison) and is_none(test.comparisons[0].comparator):
                yield from [branch] if self._is_of_object(test.left) else []

    def _fills(self, branch: cst.If) -> bool:
        stored = self._tree.below(branch.body, cst.AssignTarget)
        return any(self._is_of_object(t.target) and not self._is_put_without_graph(t) for t in stored)

    def _is_in_hand(self, container: cst.BaseExpression) -> bool:
        """Whether a container is one that its function has made."""
        while isinstance(container, (cst.Subscript, cst.Attribute)):
            container = container.value
        return isinstance(container, cst.Name) and self._is_made_here(container)

    def _is_put_without_graph(self, target: cst.AssignTarget) -> bool:
        statement = self._tree.parent(target)
        return isinstance(statement, cst.Assign) and self._is_without_graph(statement.value)

    @remembered
    def of(self, call: cst.Call) -> tuple[Leak, ...]:
        """Return the places into which what is computed of a call goes; none where the file differentiates nothing."""
        if not self._backward.passes():
            return ()
        seen: set[int] = set()
        return tuple(self._follow(call, 0, seen))

    # Where a result goes

    def _follow(self, node: cst.CSTNode, depth: int, seen: set[int]) -> Iterator[Leak]:
        """The places that an expression with a graph goes into, by the variables and functions of the file too."""
        if id(node) in seen or self._is_without_graph(node):
            return
        seen.add(id(node))
        child = node
        for ancestor in self._tree.ancestors(node):
            if isinstance(ancestor, (*FUNCTIONS, cst.Return, cst.Yield, cst.Comparison, cst.FormattedStringExpression)):
                return
            if isinstance(ancestor, cst.Attribute) and ancestor.attr.value in _READS:
                return
            if isinstance(ancestor, cst.Raise) and isinstance(ancestor.exc, cst.Call):
                yield Leak(ancestor.exc, None)  # `raise Diverged(loss)`
                return
            if isinstance(ancestor, cst.Call) and child is not ancestor.func:
                yield from self._given(child, ancestor, depth, seen)
                if self._only_tells(ancestor):
                    return
            if isinstance(ancestor, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr)):
                bound = [t.target for t in ancestor.targets] if isinstance(ancestor, cst.Assign) else [ancestor.target]
                for target in bound:
                    yield from self._put(target, depth, seen)
                    if isinstance(ancestor, cst.AugAssign) and self._extends(ancestor):
                        yield from self._into(target, depth, seen)  # `features += [x]` of what a caller holds
                if not isinstance(ancestor, cst.NamedExpr):
                    return
            if isinstance(ancestor, (cst.For, cst.CompFor)) and child is ancestor.iter:
                for name, _ in targets(ancestor.target):
                    yield from self._read(name, depth, seen)
            if isinstance(ancestor, cst.BaseStatement):
                return
            child = ancestor

    def _is_without_graph(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.BaseExpression):
            return False
        value = self._evaluator.value(node)
        return value.kind in (Kind.NUMBER, Kind.STRING, Kind.NDARRAY, Kind.NONE) or (
            value.is_tensor and value.graph is Graph.DETACHED
        )

    def _put(self, target: cst.BaseExpression, depth: int, seen: set[int]) -> Iterator[Leak]:
        """Where an assignment puts a value: into variables of its function, which are followed, or out of it."""
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                yield from self._put(element.value, depth, seen)
        elif isinstance(target, cst.Name) and self._is_local(target):
            yield from self._read(target, depth, seen)
        else:
            yield from self._into(target, depth, seen)

    def _into(self, place: cst.BaseExpression, depth: int, seen: set[int]) -> Iterator[Leak]:
        """Where what goes into a container or an object is: a variable of the function, or beyond it."""
        root = place
        while isinstance(root, (cst.Subscript, cst.Attribute)):
            root = root.value
        if self._is_in_hand(place) and isinstance(root, cst.Name):
            yield from self._read(root, depth, seen)
        elif (other := self._other_name(root)) is not None and depth < _MAX_DEPTH:
            yield from self._into(other, depth + 1, seen)
        else:
            function = self._tree.enclosing(place, *FUNCTIONS)
            yield Leak(place, function if isinstance(function, (cst.FunctionDef, cst.Lambda)) else None)

    def _extends(self, statement: cst.AugAssign) -> bool:
        """Whether a statement adds to a list, or to what its function is given, and not to a number of its own."""
        if isinstance(statement.value, (cst.List, cst.Tuple, cst.ListComp)):
            return True
        target = statement.target
        bindings = self._evaluator.scopes.bindings(target) if isinstance(target, cst.Name) else []
        return any(binding.kind is BindingKind.PARAMETER for binding in bindings)

    def _other_name(self, variable: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a variable is only another name of: ``mine = features``, ``first = state["features"]``."""
        bindings = self._evaluator.flow.definitions(variable) if isinstance(variable, cst.Name) else []
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        is_plain = bool(bindings) and bindings[0].kind is BindingKind.ASSIGNMENT
        return made if is_plain and isinstance(made, (cst.Name, cst.Attribute, cst.Subscript)) else None

    def _read(self, bound: cst.Name, depth: int, seen: set[int]) -> Iterator[Leak]:
        """The places that what a variable holds goes into, wherever it is read as it was bound there."""
        scopes, flow = self._evaluator.scopes, self._evaluator.flow
        scope = scopes.deciding(bound.value, scopes.scope(bound))
        is_binding = scopes.made_by(bound) is not None
        home = scope.node if scope is not None else self._tree.module
        for name in self._tree.named(bound.value):
            if not self._tree.within(name, home):
                continue
            is_same = name is not bound and scopes.deciding(name.value, scopes.scope(name)) is scope
            if not is_same or scopes.made_by(name) is not None:
                continue
            if not is_binding or any(binding.node is bound for binding in flow.definitions(name)):
                yield from self._follow(name, depth, seen)

    def _given(self, child: cst.CSTNode, call: cst.Call, depth: int, seen: set[int]) -> Iterator[Leak]:
        """Where a call that is given something puts it."""
        argument = child if isinstance(child, cst.Arg) else None
        name = self._evaluator.names.qualified(call.func)
        if argument is None or (name is not None and name not in (*_HEAP, "builtins.setattr")):
            return
        if name is not None:
            yield from self._into(call.args[0].value, depth, seen) if call.args[0] is not argument else ()
            return
        functions = self._run_by(call)
        if len(functions) > _MOST_METHODS:
            yield Leak(call.func, None)
        for function in functions[:_MOST_METHODS] if depth < _MAX_DEPTH else ():
            yield from self._taken(argument, call, function, depth, seen)
        written = method_call(call, *_WRITES)
        is_made_anew = written is not None and isinstance(written.value, cst.Call)  # `x.new_zeros(n).index_add_(..)`
        put = method_call(call, *STORES, *_SENDS, *_WRITES) if not is_made_anew else None
        if put is not None and not self._is_of_file(put.value) and not _MEASURES.search(identifier(put.value).lower()):
            yield from self._into(put.value, depth, seen)
        elif isinstance(call.func, cst.Name) and self._is_told_in_turn(call, call.func):
            yield Leak(call.func, None)

    def _taken(
        self, argument: cst.Arg, call: cst.Call, function: cst.FunctionDef | cst.Lambda, depth: int, seen: set[int]
    ) -> Iterator[Leak]:
        """Where a function of the file puts what a call gives it."""
        if isinstance(function, cst.Lambda):
            place = next((index for index, each in enumerate(call.args) if each is argument), 0)
            names = [each.name for each in function.params.params[place : place + 1]]
        else:
            taken = parameter_for(function, argument, call, self._evaluator.definitions)
            taken = taken or (function.params.star_kwarg if argument.keyword is not None else None)
            names = [taken.name] if taken is not None else []
        for name in names:
            yield from self._read(name, depth + 1, seen)

    def _run_by(self, call: cst.Call) -> list[cst.FunctionDef | cst.Lambda]:
        """The functions of the file that a call may run, by its name where no more is known."""
        definition = self._evaluator.definitions.definition(call.func)
        if isinstance(definition, cst.FunctionDef) and self._evaluator.definitions.owner(definition) is None:
            return [definition]
        nameless = lambdas.called(call, self._evaluator)
        if nameless is not None:
            return [nameless]
        value = self._evaluator.value(call.func)
        if value.kind is Kind.MODULE or isinstance(definition, cst.ClassDef):
            return []
        return [*self._evaluator.definitions.functions_by_name.get(identifier(call.func), ())]

    def _is_of_file(self, holder: cst.BaseExpression) -> bool:
        """Whether an object is of a class of the file, whose method shows what it keeps."""
        value = self._evaluator.value(holder)
        return isinstance(value.definition, cst.ClassDef) and value.kind is not Kind.CLASS

    def _only_tells(self, call: cst.Call) -> bool:
        """Whether a call gives nothing that has a graph, whatever it is given."""
        name = self._evaluator.names.qualified(call.func) or ""
        library, _, last = name.rpartition(".")
        return library == "builtins" and last in _TELLS

    def _is_told_in_turn(self, call: cst.Call, function: cst.Name) -> bool:
        """Whether a loop hands something to functions that give nothing: ``for hook in self.hooks: hook(loss)``."""
        is_in_turn = any(b.kind is BindingKind.ITERATION for b in self._evaluator.flow.definitions(function))
        return is_in_turn and isinstance(self._tree.parent(call), cst.Expr)

    def _is_local(self, name: cst.Name) -> bool:
        scopes = self._evaluator.scopes
        return scopes.deciding(name.value, scopes.scope(name)) is scopes.scope(name)

    def _is_made_here(self, name: cst.Name) -> bool:
        """Whether a variable holds what its function has made, and not what it was given."""
        bindings = self._evaluator.scopes.bindings(name)
        is_own = self._is_local(name) and bool(bindings)
        made = [binding for binding in bindings if binding.kind is not BindingKind.AUGMENTED]
        is_own = is_own and all(b.kind in (BindingKind.ASSIGNMENT, BindingKind.CONTEXT) for b in made)
        return is_own and not any(isinstance(b.value, (cst.Name, cst.Attribute, cst.Subscript)) for b in made)

    # Who reads it there

    def _is_of_object(self, place: cst.BaseExpression) -> bool:
        """Whether a place is an attribute of the object of a method, or in one."""
        while isinstance(place, cst.Subscript):
            place = place.value
        owner = place.value if isinstance(place, cst.Attribute) and place.attr.value != "__dict__" else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None

    def _is_of_object_of(self, function: cst.FunctionDef | None, place: cst.BaseExpression) -> bool:
        """Whether a place is in the object whose method a function is, and not in one that it is given."""
        definitions = self._evaluator.definitions
        writer = definitions.enclosing_function(place)
        theirs = definitions.owner(writer) if writer is not None else None
        own = definitions.owner(function) if function is not None else None
        if own is None or theirs is None or not self._is_of_object(place):
            return False
        return theirs in definitions.family(own) or own in definitions.family(theirs)

    def _is_differentiated(self, leak: Leak, depth: int) -> bool:
        """Whether a backward pass of the file starts from what a place holds, there or where a caller has it."""
        root = leak.place
        while isinstance(root, cst.Subscript):
            root = root.value
        if isinstance(root, cst.Attribute):
            return not self._is_made_anew(root) and self._backward.reaches(root, self._tree.module)
        if not isinstance(root, cst.Name) or depth > _MAX_DEPTH:
            return False
        function, parameter = leak.function, self._parameter(root)
        if parameter is None or not isinstance(function, cst.FunctionDef):
            return self._backward.reaches(root, self._tree.module)
        handed = [self._handed(call, function, parameter) for call in self._evaluator.callers(function)]
        return any(given is not None and self._is_read_by_caller(given, depth) for given in handed)

    def _is_made_anew(self, attribute: cst.Attribute) -> bool:
        """Whether all functions that take a backward pass give an attribute a value of its own before, no number."""
        passes = [(one, self._evaluator.definitions.enclosing_function(one)) for one in self._backward.passes()]
        return bool(passes) and all(
            frame is not None and self._is_bound_before(one, frame, attribute) for one, frame in passes
        )

    def _is_bound_before(self, one: cst.Call, frame: cst.FunctionDef, attribute: cst.Attribute) -> bool:
        return any(
            self._tree.order(statement) < self._tree.order(one)
            and is_same(target.target, attribute)
            and self._evaluator.value(statement.value).kind not in (Kind.NUMBER, Kind.NONE)
            for statement in self._tree.below(frame, cst.Assign)
            for target in statement.targets
        )

    def _is_read_by_caller(self, given: cst.BaseExpression, depth: int) -> bool:
        """Whether a caller differentiates what it has given a function to fill, or is given that itself."""
        frame = self._evaluator.definitions.enclosing_function(given)
        if self._backward.reaches(given, frame or self._tree.module):
            return True
        return self._is_differentiated(Leak(given, frame), depth + 1) if frame is not None else False

    def _parameter(self, name: cst.Name) -> cst.Param | None:
        bindings = self._evaluator.scopes.bindings(name)
        made = bindings[0] if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
        parameter = self._tree.parent(made.node) if made is not None else None
        return parameter if isinstance(parameter, cst.Param) else None

    def _handed(self, call: cst.Call, function: cst.FunctionDef, parameter: cst.Param) -> cst.BaseExpression | None:
        """What a call gives for a parameter; for the object of a method what it is called on."""
        first = next(iter((*function.params.posonly_params, *function.params.params)), None)
        is_method = self._evaluator.definitions.owner(function) is not None
        if parameter is first and is_method and not self._evaluator.definitions.is_static(function):
            return call.func.value if isinstance(call.func, cst.Attribute) else None
        given = argument_for(function, parameter, call, self._evaluator.definitions)
        return given if isinstance(given, cst.BaseExpression) else None


def _called(decorator: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a decorator names: ``lru_cache`` of ``@lru_cache(maxsize=8)``."""
    return decorator.func if isinstance(decorator, cst.Call) else decorator
