"""Variables that are there before a step, and what each step makes anew of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import Binding, BindingKind, bound_places
from torchlint.semantics.dataflow.held import runs_while_made
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.batch_sources import batch_evidence
from torchlint.semantics.heat.hotness import Hotness
from torchlint.semantics.retention.stores import Store, appended, carried_on, combined, container, stored
from torchlint.semantics.tables.container_methods import TAKES_ONE_OUT
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import identifier, is_none, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_CLEARS = ("clear", "zero_", "fill_")
_STARTS_ANEW = re.compile(r"^_?reset$|(^|_)epoch(_|$)")
_CONTAINERS = frozenset(
    ("builtins.dict", "builtins.list", "collections.defaultdict", "collections.OrderedDict", "collections.deque")
)
_SELDOM = re.compile(r"^_?(reset|clear|end|finish|finalize|compute|summary|report)(_|$)|(^|_)epoch(_|$)")
_BOUND = (BindingKind.ASSIGNMENT, BindingKind.AUGMENTED)


class Holders:
    """Answers whether a variable outlives a step."""

    def __init__(self, evaluator: Evaluator, hotness: Hotness) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._hotness = hotness

    def is_hot(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs again and again, with the steps of a loop."""
        return self._hotness.heat(node) is not None

    def is_from_outside(self, variable: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a variable is there before a function runs: an attribute of ``self``, a list of the module."""
        if self.is_of_self(variable):
            return True
        base = _base(variable)
        bindings = self._evaluator.scopes.bindings(base) if isinstance(base, cst.Name) else []
        if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER:
            owner = bindings[0].scope.node  # a closure finds what the function around it is given
            if owner is function:
                return self._is_callers(bindings[0])
            return self._tree.within(function, owner) and not self.is_emptied_by_others(variable)
        around = self._tree.enclosing(function, *LOOPS, cst.FunctionDef)  # which makes a closure for each pass
        inside = around if isinstance(around, LOOPS) else function
        if bindings and not self._tree.within(bindings[0].scope.node, function):  # `nonlocal total`
            bindings = [binding for binding in bindings if binding.kind is not BindingKind.AUGMENTED]
        return bool(bindings) and all(
            binding.kind in _BOUND and not self._tree.within(binding.node, inside) for binding in bindings
        )

    def _is_callers(self, parameter: Binding) -> bool:
        """Whether each step that calls a function gives it the same list: ``step(model, x, losses)``."""
        given = passed_for(parameter, self._evaluator)
        return bool(given) and all(map(self._outlives_step, given))

    def _outlives_step(self, value: cst.BaseExpression) -> bool:
        """Whether a variable holds a list from before the loop over steps around it, which only hands it on."""
        bindings = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        heat = self._hotness.heat(value) if bindings else None
        if heat is None or not isinstance(value, cst.Name):
            return False
        used = [name for name in self._tree.below(heat.root, cst.Name) if name.value == value.value]
        return used == [value] and all(
            self._is_container(binding.value) and not self._tree.within(binding.node, heat.root) for binding in bindings
        )

    def _is_container(self, made: cst.CSTNode | None) -> bool:
        called = self._evaluator.names.qualified(made.func) if isinstance(made, cst.Call) else None
        return isinstance(made, (cst.List, cst.Dict)) or called in _CONTAINERS

    def is_of_self(self, variable: cst.BaseExpression) -> bool:
        """Return whether a variable is an attribute of ``self``, or in one."""
        base, is_attribute = variable, False
        while (holder := base.value if isinstance(base, cst.Attribute) else container(base)) is not None:
            is_attribute = is_attribute or isinstance(base, cst.Attribute)
            base = holder
        return is_attribute and isinstance(base, cst.Name) and self._evaluator.definitions.receiver(base) is not None

    def is_remade(self, variable: cst.BaseExpression, node: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Return whether every step binds or clears the variable, so that nothing of an earlier step is left."""
        if isinstance(variable, cst.Name) and not self._evaluator.scopes.bindings(variable):
            return True
        if not self._tree.within(node, place):  # a helper of the step: whatever else resets the variable may run too
            return self.is_reset(variable, node)
        inside = {id(block) for block, _ in self._evaluator.flow.blocks(node)}
        return any(
            self._tree.within(reset, place) and self._always_runs(reset, inside)
            for reset in self._resets(variable)
            if reset is not node and not (self._is_cut(reset) and self._joins(node))
        )

    def is_reset(self, variable: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Return whether anything empties a variable after its object was made, or takes something out of it.

        What starts it is none: ``if self.mean is None: self.mean = value``.
        """
        return any(not self._is_start(reset, variable, node) for reset in self._later(variable))

    def _is_start(self, reset: cst.CSTNode, variable: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Whether a place binds a variable instead of a sum that goes on with it, as a test finds no value yet."""
        fork = self._tree.enclosing(reset, cst.If)
        if fork is None:
            return False
        if self._tree.within(reset, fork.body) and self._is_missing(fork.test, variable):
            return True
        if not isinstance(node, cst.Assign) or not self._evaluator.flow.exclusive(reset, node):
            return False
        compared = [*self._tree.below(fork.test, cst.ComparisonTarget)]
        asks = any(isinstance(c.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for c in compared)
        held = (variable, container(variable) or variable)
        return asks and any(is_same(n, h) for n in self._tree.descendants(fork.test) for h in held)

    def _is_missing(self, test: cst.BaseExpression, variable: cst.BaseExpression) -> bool:
        """Whether a test holds while a dictionary has no such entry: ``if name not in self.meters``.

        Also the dictionary of which it is an entry: ``key not in self.stats or self.stats[key] is None``
        """
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
            return self._is_missing(test.left, variable) and self._is_missing(test.right, variable)
        if not isinstance(test, cst.Comparison):
            return False
        operator, asked = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, cst.Is) and is_none(asked):
            return any(is_same(test.left, place) for place in _places(variable))
        if not isinstance(operator, cst.NotIn):
            return False
        asked = method.value if (method := method_call(asked, "keys")) is not None else asked
        is_asked = any(is_same(asked, place) for place in _places(variable)[1:])
        return is_asked and any(is_same(part, test.left) for part in self._tree.descendants(variable))

    def _is_cut(self, target: cst.CSTNode) -> bool:
        """Whether a variable becomes a part of itself: ``states = states[-size:]``."""
        statement = self._evaluator.flow.statement(target)
        part = statement.value if isinstance(statement, cst.Assign) else None
        bound = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else []
        return isinstance(part, cst.Subscript) and len(bound) == 1 and is_same(part.value, bound[0])

    def _joins(self, node: cst.CSTNode) -> bool:
        """Whether a statement puts tensors together: a part of the result holds on to the graph of the whole."""
        found = combined(node, self._evaluator.names) if isinstance(node, cst.Assign) else None
        return found is not None and not found.is_stored

    def is_of_one_step(self, variable: cst.BaseExpression, node: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Return whether a loop over steps around that one makes it anew: ``for i in range(n): total += f(i)``."""
        if isinstance(place, cst.For) and self._takes_batches(place):
            return False  # as many passes as there are batches, or as a step accumulates
        around = (a for a in self._tree.ancestors(place) if isinstance(a, LOOPS) and self._tree.within(node, place))
        if any(self._hotness.loop(loop) and self.is_remade(variable, node, loop) for loop in around):
            return True
        function = self._evaluator.definitions.enclosing_function(place)
        if function is None or self.is_from_outside(variable, function):
            return False
        heats = map(self._hotness.heat, self._evaluator.callers(function))
        return any(heat is not None and heat.trains for heat in heats)

    def _takes_batches(self, loop: cst.For) -> bool:
        given = batch_evidence(self._evaluator.iterated(loop)) is not None
        return given or self._hotness.next_batch(loop) is not None or self._feeds_model(loop)

    def _feeds_model(self, loop: cst.For) -> bool:
        """Whether each iteration gives a model what the loop goes over, as batches that a step has put aside."""
        taken = [name.value for name in self._tree.below(loop.target, cst.Name)]
        given = (
            argument.value
            for call in self._tree.below(loop.body, cst.Call)
            if _is_model(self._evaluator.value(call.func))
            for argument in call.args
        )
        fed = (value for value in given if isinstance(value, cst.Name) and value.value in taken)
        return any(self._evaluator.value(value).kind is not Kind.NUMBER for value in fed)

    def starts_anew(self, variable: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Return whether a step may begin a variable anew or take out all that it holds: not the oldest of a window.

        ``node`` is what adds to the variable.
        """
        if self.is_emptied_by_others(variable):
            return True
        resets = (reset for reset in self._resets(variable) if not self._is_cut(reset))
        places = [*resets, *filter(self._takes_all, self._emptied(variable))]
        others = (place for place in places if self._evaluator.flow.statement(place) is not node)
        functions = map(self._evaluator.definitions.enclosing_function, others)
        return any(f is not None and f.name.value != "__init__" and not self._is_seldom(f) for f in functions)

    def is_emptied_by_steps(self, variable: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Return whether a function that begins a variable anew is called in each step, or beside what adds to it."""
        here = self._evaluator.definitions.enclosing_function(node)
        while (holder := container(variable)) is not None:
            variable = holder
        for place in (*self._resets(variable), *filter(self._takes_all, self._emptied(variable))):
            function = self._evaluator.definitions.enclosing_function(place)
            if function is None or function is here or function.name.value == "__init__":
                continue
            if function.name.value in ("__enter__", "__exit__"):
                return True
            calls = self._tree.calls_named(function.name.value)
            emptying = (c for c in calls if self.is_hot(c) or self._is_beside(c, node))
            if any(not self._is_of_making(c) and not self._is_of_other(c, node) for c in emptying):
                return True
        return False

    def _is_of_making(self, call: cst.Call) -> bool:
        return runs_while_made(self._evaluator.definitions.enclosing_function(call), self._evaluator)

    def _is_of_other(self, call: cst.Call, node: cst.CSTNode) -> bool:
        """Whether a call is of an object that another function makes for itself, and a node of another."""
        keeping, method = method_call(node), method_call(call)
        keeper = keeping.value if keeping is not None else None
        if not isinstance(keeper, cst.Name) or self._evaluator.definitions.receiver(keeper) is not None:
            return False
        of = method.value if method is not None else None
        bindings = self._evaluator.flow.definitions(of) if isinstance(of, cst.Name) else []
        here = self._evaluator.definitions.enclosing_function(node)
        return bool(bindings) and all(
            isinstance(binding.value, cst.Call)
            and not binding.path
            and binding.kind is BindingKind.ASSIGNMENT
            and self._evaluator.definitions.enclosing_function(binding.node) is not here
            for binding in bindings
        )

    def _is_beside(self, call: cst.Call, node: cst.CSTNode) -> bool:
        """Whether a call stands in the function of a node, but not around the loop over steps that runs the node."""
        function, heat = self._evaluator.definitions.enclosing_function(node), self._hotness.heat(node)
        if self._evaluator.definitions.enclosing_function(call) is not function:
            return False
        frame = function if function is not None else self._tree.module
        is_around = heat is not None and self._tree.within(heat.root, frame)
        return heat is None or not is_around or self._tree.within(call, heat.root)

    def is_emptied_by_others(self, variable: cst.BaseExpression) -> bool:
        """Return whether the file binds or clears an attribute of this name of any object: ``tap.outputs.clear()``."""
        if not isinstance(variable, cst.Attribute):
            return False
        cleared = map(method_call, self._tree.calls_named(*_CLEARS))
        places: list[cst.BaseExpression] = [each.value for each in cleared if each is not None]
        places += [part for _, part in self._bound.get(variable.attr.value, ())]
        same = (p for p in places if isinstance(p, cst.Attribute) and p.attr.value == variable.attr.value)
        return any(not self.is_of_self(place) for place in same)

    @remembered
    def _is_seldom(self, function: cst.FunctionDef) -> bool:
        """Whether a function is no part of a step: by its name, or by the calls of the file."""
        calls, name = self._evaluator.callers(function), function.name.value
        told = bool(calls) or _SELDOM.search(name) is not None
        by_name = [call for call in self._tree.nodes(cst.Call) if _is_named_for(identifier(call.func), name)]
        is_hot = self._hotness.function(function) is not None
        return told and not is_hot and all(self._hotness.heat(call) is None for call in (*calls, *by_name))

    def _takes_all(self, place: cst.CSTNode) -> bool:
        """Whether ``del items[:]`` or ``last = items.pop()`` empties a list, rather than to cut it."""
        if isinstance(place, cst.Call):
            taken = self._tree.parent(place)
            call = self._tree.parent(taken) if isinstance(taken, cst.Arg) else None
            is_moved = isinstance(call, cst.Call) and appended(call) is not None
            return not place.args and not is_moved and not isinstance(taken, cst.Expr)
        held = place.target if isinstance(place, cst.Del) else None
        index = held.slice[0].slice if isinstance(held, cst.Subscript) else None
        return index is None or (isinstance(index, cst.Slice) and index.lower is None and index.upper is None)

    def is_carried(self, kept: Store, node: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Return whether each step replaces the element by what it makes of it: ``state[i] = repackage(state[i])``."""
        inside = {id(block) for block, _ in self._evaluator.flow.blocks(node)}
        for other in self._tree.below(place, cst.Assign):
            found = stored(other) if other is not node else None
            if found is None or found.index is None or kept.index is None or not isinstance(other.value, cst.Call):
                continue
            is_same_place = is_same(found.variable, kept.variable) and is_same(found.index, kept.index)
            element = other.targets[0].target
            takes_it = any(is_same(argument.value, element) for argument in other.value.args)
            method = method_call(other.value)
            takes_it = takes_it or (method is not None and is_same(method.value, element))
            if is_same_place and takes_it and self._always_runs(other, inside):
                return True
        return False

    def _later(self, variable: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """The places that make a variable anew, or take something out of it, after the object was made."""
        for reset in (*self._resets(variable), *self._emptied(variable)):
            function = self._evaluator.definitions.enclosing_function(reset)
            if function is not None and function.name.value != "__init__" and not self._runs_between(function):
                yield reset

    def _runs_between(self, function: cst.FunctionDef) -> bool:
        """Whether a method starts its object anew for another epoch, and no step of the file calls it."""
        if not _STARTS_ANEW.search(function.name.value):
            return False
        heats = map(self._hotness.heat, self._evaluator.callers(function))
        return all(heat is None for heat in heats)

    def _emptied(self, variable: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """``del items[:]``, ``items.pop()``."""
        for statement in self._tree.nodes(cst.Del):
            held = statement.target
            if is_same(held.value if isinstance(held, cst.Subscript) else held, variable):
                yield statement
        for call in self._tree.calls_named(*TAKES_ONE_OUT):
            method = method_call(call)
            if method is not None and is_same(method.value, variable):
                yield call

    def _resets(self, variable: cst.BaseExpression) -> list[cst.CSTNode]:
        """The places that make a variable, or what holds it, anew."""
        found: list[cst.CSTNode] = []
        held: cst.BaseExpression = variable
        while isinstance(held, (cst.Attribute, cst.Subscript)):
            found += [
                target
                for target, part in self._bound.get(identifier(held), ())
                if is_same(part, held) and not self._adds_to_itself(target)
            ]
            held = held.value
        if isinstance(held, cst.Name):
            bindings = self._evaluator.scopes.bindings(held)
            found += [
                b.node for b in bindings if b.kind is not BindingKind.AUGMENTED and not self._adds_to_itself(b.node)
            ]
        clears = (call for call in self._tree.calls_named(*_CLEARS) if method_call(call) is not None)
        found += [c for c in clears if isinstance(c.func, cst.Attribute) and is_same(c.func.value, variable)]
        return found

    @cached_property
    def _bound(self) -> dict[str, list[tuple[cst.AssignTarget, cst.BaseExpression]]]:
        """What assignments bind, with all else that they do, by its last name."""
        found: dict[str, list[tuple[cst.AssignTarget, cst.BaseExpression]]] = {}
        for target in self._tree.nodes(cst.AssignTarget):
            for part, _ in bound_places(target.target):
                found.setdefault(identifier(part), []).append((target, part))
        return found

    def _adds_to_itself(self, target: cst.CSTNode) -> bool:
        statement = self._evaluator.flow.statement(target)
        return isinstance(statement, cst.Assign) and carried_on(statement, self._evaluator) is not None

    def _always_runs(self, reset: cst.CSTNode, inside: set[int]) -> bool:
        """Whether a statement stands in a block around the step, or in a ``with`` of one."""
        statement = self._evaluator.flow.statement(reset)
        if isinstance(statement, (cst.For, cst.With)):
            return id(statement.body) in inside
        for block, _ in self._evaluator.flow.blocks(statement):
            if id(block) in inside:
                return True
            if not isinstance(self._tree.parent(block), cst.With):
                return False
        return False


def _is_named_for(called: str, name: str) -> bool:
    """Return whether a function that is called may run a method: of the same name, or `reset_net` for `reset`."""
    return called == name or (name.startswith("reset") and called.startswith("reset_"))


def _is_model(called: Value) -> bool:
    return called.kind is Kind.MODULE and called.origin is not Origin.LOSS and called.evidence >= Evidence.INFERRED


def _base(variable: cst.BaseExpression) -> cst.BaseExpression:
    """Return the first name in ``name.attribute[key]``."""
    while (holder := variable.value if isinstance(variable, cst.Attribute) else container(variable)) is not None:
        variable = holder
    return variable


def _places(variable: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return a variable, and the containers that it is an entry of, each in the next."""
    found = [variable]
    while (held := container(found[-1])) is not None:
        found.append(held)
    return found
