"""What is a number, or None, on some of the ways on which a value gets where it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.narrowing import is_tensor_here
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.retention.certain_runs import CertainRuns
from torchlint.semantics.retention.conditions import conditions, exclude, tests_before
from torchlint.semantics.retention.records import Records
from torchlint.semantics.retention.stores import elements
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, identifier, is_none, literal, method_call
from torchlint.syntax.canonical import is_same

_Kinds = frozenset[Kind]
_NOTHING: _Kinds = frozenset()
_NUMBERS = frozenset((Kind.NUMBER, Kind.NONE))
_OBJECTS = frozenset((Kind.INSTANCE, Kind.MODULE))
_RUN = ("forward", "__call__")
_BACKWARD = ("backward", "manual_backward", "scale")
_MAX_DEPTH = 12
_MOST_STEPS = 150


class MaybeNumbers:
    """Follows a value back to what it is made of; where that takes too long, it may be anything."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._records = Records(evaluator)
        self._runs = CertainRuns(evaluator)
        self._variables: dict[int, _Kinds] = {}
        self._left = 0

    def kinds(self, value: cst.BaseExpression) -> _Kinds:
        """Return ``NUMBER`` and ``NONE`` if the file shows a way on which a value is one."""
        self._variables.clear()  # what is found on the way depends on where one started
        self._left = _MOST_STEPS
        found = self._kinds(value, 0)
        if self._left <= 0:
            return _NUMBERS
        is_summed = isinstance(self._tree.parent(value), (cst.AugAssign, cst.BinaryOperation))
        return found - {Kind.NONE} if is_summed else found  # nothing can be added to None

    def _kinds(self, value: cst.BaseExpression, depth: int) -> _Kinds:
        self._left -= 1
        if depth > _MAX_DEPTH or self._left <= 0:
            return _NOTHING
        if is_none(value):
            return frozenset((Kind.NONE,))
        if isinstance(literal(value), (int, float)):
            return frozenset((Kind.NUMBER,))
        if isinstance(value, cst.Name):
            return self._of_variable(value, depth)
        if isinstance(value, cst.Subscript) and (record := self._records.by_key(value)) is not None:
            return self._of_terms(record, depth)
        if isinstance(value, (cst.Attribute, cst.Subscript)):
            return self._of_place(value, depth)
        if isinstance(value, cst.IfExp):
            return self._kinds(value.body, depth + 1) | self._kinds(value.orelse, depth + 1)
        if isinstance(value, cst.UnaryOperation):
            return self._kinds(value.expression, depth + 1) - {Kind.NONE}
        if isinstance(value, cst.BinaryOperation):
            sides = [self._kinds(side, depth + 1) - {Kind.NONE} for side in (value.left, value.right)]
            known = (self._evaluator.value(side).kind is Kind.NUMBER for side in (value.left, value.right))
            return sides[0] | sides[1] if all(s or k for s, k in zip(sides, known, strict=True)) else _NOTHING
        return self._of_call(value, (), depth) if isinstance(value, cst.Call) else _NOTHING

    # Variables

    def _of_variable(self, name: cst.Name, depth: int) -> _Kinds:
        if id(name) not in self._variables:
            self._variables[id(name)] = _NOTHING  # what it was before in a loop adds nothing
            self._variables[id(name)] = self._reaching(name, depth)
        return self._variables[id(name)]

    def _reaching(self, name: cst.Name, depth: int) -> _Kinds:
        """What the statements that bind a variable leave open where it is read."""
        bindings = self._evaluator.flow.definitions(name)
        found = {id(b): self._of_binding(b, depth) for b in bindings}
        open_kinds = frozenset[Kind]().union(*found.values())
        if not open_kinds or is_tensor_here(name, self._evaluator) or self._is_used_as_tensor(name):
            return _NOTHING
        holds, place = conditions(name, self._tree), self._tree.order(name)
        under = {id(b): conditions(b.node, self._tree) for b in bindings}
        certain = (b for b in bindings if self._runs.surely(b.node, name))
        tensors = (b.order for b in certain if not found[id(b)] and under[id(b)] <= holds)
        last = max((order for order in tensors if order < place), default=-1)  # the last that certainly bound a tensor
        left = (b for b in bindings if b.order > last and (last < 0 or not exclude(under[id(b)], holds)))
        return frozenset[Kind]().union(*(found[id(b)] for b in left)) - self._ruled_out(name)

    def _of_binding(self, binding: Binding, depth: int) -> _Kinds:
        """What one statement may bind to a variable."""
        value, part = binding.value, binding.part
        if binding.kind is BindingKind.PARAMETER:
            return self._kinds(value, depth + 1) if value is not None else _NOTHING
        if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.Name) and value is not None:
            is_number = self._evaluator.value(value).kind is Kind.NUMBER or self._kinds(value, depth + 1)
            return self._of_variable(binding.node, depth + 1) - {Kind.NONE} if is_number else _NOTHING
        if (record := self._records.source(binding)) is not None:
            return self._of_record(record)
        if (terms := self._records.gone_over(binding)) is not None:
            return self._of_terms(terms, depth)
        if binding.kind is not BindingKind.ASSIGNMENT:
            return _NOTHING
        if part is not None:
            return self._kinds(part, depth + 1)
        return self._of_call(value, binding.path, depth) if isinstance(value, cst.Call) else _NOTHING

    def _of_record(self, record: Binding) -> _Kinds:
        """What an item is of the dictionaries that a function is given: one of them may hold a number."""
        given = passed_for(record, self._evaluator)
        made = (source for value in given for source in (value, *self._evaluator.held_by(value)))
        items = (item for each in made if isinstance(each, cst.Dict) for item in elements(each))
        is_open = any(not self._evaluator.value(item).is_tensor for item in items)
        return frozenset((Kind.NUMBER,)) if is_open else _NOTHING

    def _of_terms(self, terms: cst.Name, depth: int) -> _Kinds:
        """What an item is of a dictionary that a function of the file writes out; a hook may put a number there."""
        made = self._records.origin(terms)
        if made is None:  # one of them may be the loss, and the others what is logged beside it
            held = self._evaluator.value(terms).iterated()
            is_shown = held.is_tensor and held.evidence >= Evidence.INFERRED
            return _NOTHING if is_shown or self._records.sums_up(terms) else frozenset((Kind.NUMBER,))
        written = self._evaluator.definitions.enclosing_function(made) or self._tree.module
        if any(self._is_told_in_turn(call, made) for call in self._tree.below(written, cst.Call)):
            return frozenset((Kind.NUMBER,))
        return frozenset[Kind]().union(*(self._kinds(item, depth + 1) for item in elements(made)))

    def _is_told_in_turn(self, call: cst.Call, made: cst.Dict) -> bool:
        """Whether a loop hands a dictionary to one function after another: ``for hook in self.hooks: hook(terms)``."""
        given = (a.value for a in call.args if isinstance(a.value, cst.Name))
        if not any(b.value is made for name in given for b in self._evaluator.flow.definitions(name)):
            return False
        called = self._evaluator.flow.definitions(call.func) if isinstance(call.func, cst.Name) else ()
        return any(binding.kind is BindingKind.ITERATION for binding in called)

    def _is_used_as_tensor(self, name: cst.Name) -> bool:
        """Whether the same value is certainly used as only a tensor can be: nothing comes of it if it is a number."""
        holds, bound = conditions(name, self._tree), self._bound(name)
        uses = (n for n in self._tree.named(name.value) if n is not name and self._takes_tensor(n))
        return any(self._bound(use) == bound and conditions(use, self._tree) <= holds for use in uses)

    def _bound(self, name: cst.Name) -> list[int]:
        return [id(binding.node) for binding in self._evaluator.flow.definitions(name)]

    def _takes_tensor(self, use: cst.BaseExpression) -> bool:
        """Whether a number would fail where a variable is used: ``x.item()``, ``(x / n).backward()``, ``scale(x)``."""
        node: cst.CSTNode = use
        parent = self._tree.parent(node)
        while isinstance(parent, cst.BinaryOperation) and parent.left is node:
            if not isinstance(parent.operator, cst.Divide):
                return False
            node, parent = parent, self._tree.parent(parent)
        if isinstance(parent, cst.Attribute):
            return parent.value is node
        call = self._tree.parent(parent) if isinstance(parent, cst.Arg) else None
        return isinstance(call, cst.Call) and call.args[0] is parent and method_call(call, *_BACKWARD) is not None

    def _ruled_out(self, value: cst.BaseExpression) -> _Kinds:
        """What a test on the way to a value leaves out: ``if x is not None: ...``, ``if not x: continue``."""
        found = set[Kind]()
        for test in tests_before(value, self._tree):
            if any(is_same(part, value) for part in (test, *self._tree.below(test, type(value)))):
                asks_none = isinstance(test, cst.Comparison) and any(is_none(t.comparator) for t in test.comparisons)
                found |= {Kind.NONE} if asks_none else _NUMBERS
        return frozenset(found)

    # Attributes, and items of a dictionary

    def _of_place(self, place: cst.Attribute | cst.Subscript, depth: int) -> _Kinds:
        function = self._evaluator.definitions.enclosing_function(place) or self._tree.module
        places = [p for p in self._tree.below(function, type(place)) if p is not place and is_same(p, place)]
        holds = conditions(place, self._tree)
        if any(self._takes_tensor(p) and conditions(p, self._tree) <= holds for p in places):
            return _NOTHING
        found = frozenset[Kind]().union(*(self._kinds(start, depth + 1) for start in self._starts(place)))
        if not found:
            return found
        for at, value in sorted(self._assigned(place, places, function), key=lambda pair: self._tree.order(pair[0])):
            if self._tree.order(at) < self._tree.order(place):
                given = self._kinds(value, depth + 1)
                found = given if conditions(at, self._tree) <= holds else found | given
        return found - self._ruled_out(place)

    def _assigned(
        self, place: cst.Attribute | cst.Subscript, places: Iterable[cst.CSTNode], function: cst.CSTNode
    ) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
        """Where a function assigns to an attribute or item, or calls a method that always does, with the value."""
        for each in places:
            if (value := self._assigned_to(each)) is not None:
                yield each, value
        for call in self._tree.below(function, cst.Call) if isinstance(place, cst.Attribute) else ():
            method = self._evaluator.definitions.definition(call.func)
            if isinstance(method, cst.FunctionDef) and method is not function:
                for each in self._tree.below(method.body, cst.Attribute):
                    value = self._assigned_to(each) if is_same(each, place) else None
                    if value is not None and not conditions(each, self._tree):
                        yield call, value

    def _assigned_to(self, place: cst.CSTNode) -> cst.BaseExpression | None:
        target = self._tree.parent(place)
        statement = self._tree.parent(target) if isinstance(target, cst.AssignTarget) else None
        return statement.value if isinstance(statement, cst.Assign) else None

    def _starts(self, place: cst.Attribute | cst.Subscript) -> Iterator[cst.BaseExpression]:
        """What an attribute, or an item of a dictionary, is made with."""
        held = place.value
        if not isinstance(held, cst.Name):
            return
        if isinstance(place, cst.Attribute):
            owner = self._evaluator.definitions.receiver(held)
            made = self._evaluator.definitions.attribute(owner, place.attr.value) if owner is not None else []
            yield from (each.value for each in made if each.value is not None and not each.path)
            return
        index = place.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
        bindings = self._evaluator.flow.definitions(held) if key is not None else ()
        tables = (b.value for b in bindings if isinstance(b.value, cst.Dict) and not b.path)
        pairs = (pair for table in tables for pair in table.elements if isinstance(pair, cst.DictElement))
        yield from (pair.value for pair in pairs if key is not None and is_same(pair.key, key))

    # Calls

    def _of_call(self, call: cst.Call, path: tuple[int, ...], depth: int) -> _Kinds:
        if not path and self._evaluator.value(call).kind in _NUMBERS:
            return frozenset((self._evaluator.value(call).kind,))
        if self._evaluator.names.qualified(call.func) == "builtins.sum" and len(call.args) == 1 and not path:
            return self._of_sum(call.args[0].value)
        found = set[Kind]()
        for function in self._behind(call):
            for result in self._evaluator.definitions.results(function):
                part = element_at(result, path)
                if part is not None and not self._is_told(call, function, result):
                    found |= self._kinds(part, depth + 1)
        for nameless in self._in_table(call) if not path else ():
            found |= self._kinds(nameless.body, depth + 1)
        return frozenset(found)

    def _of_sum(self, summed: cst.BaseExpression) -> _Kinds:
        """What ``sum`` gives: 0 of nothing; of the losses that a step sums up and differentiates there are some."""
        over = summed.for_in.iter if isinstance(summed, (cst.GeneratorExp, cst.ListComp)) else None
        items = method_call(over, "values", "items")
        if items is not None and isinstance(items.value, cst.Name) and self._records.sums_up(items.value):
            return _NOTHING
        return _NOTHING if self._runs.has_items(summed) else frozenset((Kind.NUMBER,))

    def _in_table(self, call: cst.Call) -> Iterator[cst.Lambda]:
        """The nameless functions of a table of which a call may run one: ``self.penalty = PENALTIES[kind]``."""
        held = (call.func, *self._evaluator.held_by(call.func))
        chosen = (each.value for each in held if isinstance(each, cst.Subscript))
        tables = (made for each in chosen for made in (each, *self._evaluator.held_by(each)))
        entries = (entry for table in tables if isinstance(table, cst.Dict) for entry in elements(table))
        yield from (entry for entry in entries if isinstance(entry, cst.Lambda))

    def _behind(self, call: cst.Call) -> Iterable[cst.FunctionDef]:
        """The function of the file, or the method of an object of its classes, that a call runs."""
        definitions = self._evaluator.definitions
        defined = definitions.definition(call.func)
        if isinstance(defined, cst.FunctionDef):
            return (defined, *definitions.overriding(defined))
        method = method_call(call)
        if method is not None and (inherited := self._inherited(method)) is not None:
            return (inherited,)
        names = (_RUN, call.func) if method is None else ((method.attr.value,), method.value)
        for wanted, held in ((_RUN, call.func), names):
            value = self._evaluator.value(held)
            if value.kind in _OBJECTS and isinstance(value.definition, cst.ClassDef):
                found = (definitions.method(value.definition, name) for name in wanted)
                return [function for function in found if function is not None][:1]
        return ()

    def _inherited(self, method: cst.Attribute) -> cst.FunctionDef | None:
        """The method of a base of the file that ``super().method`` is."""
        is_super = isinstance(method.value, cst.Call) and identifier(method.value.func) == "super"
        owner = self._tree.enclosing(method, cst.ClassDef) if is_super else None
        bases = self._evaluator.definitions.bases(owner) if owner is not None else ()
        found = (self._evaluator.definitions.method(base, method.attr.value) for base in bases)
        return next((each for each in found if each is not None), None)

    def _is_told(self, call: cst.Call, function: cst.FunctionDef, result: cst.BaseExpression) -> bool:
        """Whether a function gives a result only where a parameter is missing that a call gives it."""
        if self._evaluator.told.leaves_out(result, function, call):
            return True
        tests = tests_before(result, self._tree)
        named = {identifier(name) for test in tests for name in (test, *self._tree.below(test, cst.Name))}
        given = (p for p in function.params.params if p.name.value in named and p.default is not None)
        return any(
            (a := argument_for(function, p, call, self._evaluator.definitions)) and not is_none(a) for p in given
        )
