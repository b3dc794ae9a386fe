"""Dictionaries of losses: kept whole, or of which an item is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.own_keys import is_by_own_key
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.decorated import gives_other
from torchlint.semantics.evaluate.entries import key_of
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.stores import elements
from torchlint.semantics.tables.container_methods import CHANGES_KEYS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, identifier, literal, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_MAX_DEPTH = 3
"""Through how many functions that hand it on a dictionary is followed."""

_REDUCES = re.compile(r"(^|_)(detach\w*|reduced?([A-Z]\w*)?|to_host|to_cpu|item)(_|$)")


class Records:
    """Finds them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def holds_loss(self, value: cst.BaseExpression, losses: list[cst.BaseExpression]) -> bool:
        """Return whether a variable is a dictionary of which some losses that are differentiated are items.

        ``out["loss"].backward()``, ``sum(out.values()).backward()``
        """
        if not isinstance(value, cst.Name):
            return False
        held = [name for loss in losses for name in self._held(loss) if self.is_one(name, value)]
        return bool(held) and not self._is_detached(value, held) and not self.is_changed(value)

    @remembered
    def given(self, value: cst.BaseExpression) -> list[Binding]:
        """Return the parameters that loops take a value or its factors out of: ``for name, loss in losses.items()``."""
        factors = (value.left, value.right) if isinstance(value, cst.BinaryOperation) else (value,)
        return [binding for factor in factors if (binding := self._taken_from(factor)) is not None]

    def _taken_from(self, value: cst.BaseExpression) -> Binding | None:
        taken = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        return self.source(taken[0]) if len(taken) == 1 else None

    def source(self, item: Binding) -> Binding | None:
        """Return the parameter of whose dictionary a loop gives an item a name; None if it goes over something else."""
        record = self.gone_over(item)
        held = self._evaluator.flow.definitions(record) if record is not None else []
        return held[0] if len(held) == 1 and held[0].kind is BindingKind.PARAMETER else None

    def gone_over(self, item: Binding) -> cst.Name | None:
        """Return the dictionary of which a loop gives an item a name, None if something may detach its items."""
        method = method_call(item.value, "items", "values") if item.kind is BindingKind.ITERATION else None
        is_value = method is not None and item.path == ((1,) if method.attr.value == "items" else ())
        record = method.value if is_value and method is not None else None
        return record if isinstance(record, cst.Name) and not self._is_detached(record) else None

    def may_be_replaced(self, value: cst.BaseExpression) -> bool:
        """Return whether a loop takes a value out of a dictionary that a function of the file has written to."""
        taken = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        method = method_call(taken[0].value, "items", "values") if len(taken) == 1 else None
        record = method.value if method is not None else None
        function = self._evaluator.definitions.enclosing_function(value) or self._tree.module
        calls = self._tree.below(function, cst.Call) if isinstance(record, cst.Name) else []
        return isinstance(record, cst.Name) and any(self._writes_to(call, record) for call in calls)

    def iterated(self, value: cst.BaseExpression) -> list[cst.Name]:
        """Return the dictionaries of which loops take a value or its factors, as ``given`` does."""
        factors = (value.left, value.right) if isinstance(value, cst.BinaryOperation) else (value,)
        taken = [self._evaluator.flow.definitions(each) for each in factors if isinstance(each, cst.Name)]
        found = [self.gone_over(bindings[0]) for bindings in taken if len(bindings) == 1]
        found += [self.by_key(each) for each in factors if isinstance(each, cst.Subscript)]
        return [record for record in found if record is not None]

    def by_key(self, item: cst.Subscript) -> cst.Name | None:
        """Return the dictionary over whose keys a loop goes to take each item: ``for key in losses: losses[key]``."""
        record = item.value
        if not isinstance(record, cst.Name) or not is_by_own_key(item, self._evaluator.flow):
            return None
        return None if self._is_detached(record) else record

    def returned(self, record: cst.Name) -> tuple[cst.Name, cst.FunctionDef] | None:
        """Return the variable that a function of the file hands out as a dictionary: ``terms = self.step(batch)``."""
        given, function = self._handed_out(record)
        return (given, function) if isinstance(given, cst.Name) and function is not None else None

    def _handed_out(self, record: cst.Name) -> tuple[cst.BaseExpression | None, cst.FunctionDef | None]:
        """What the function returns, and which it is, that makes a variable, and that leaves it as it is."""
        definitions = self._evaluator.flow.definitions(record)
        made = definitions[0] if len(definitions) == 1 else None
        function = self._run(made.value) if made is not None else None
        if made is None or function is None or self.may_lose_graph(record):
            return None, None
        results = self._evaluator.definitions.results(function)
        return (element_at(results[0], made.path) if len(results) == 1 else None), function

    def items(self, value: cst.BaseExpression, root: cst.CSTNode) -> tuple[cst.BaseExpression, ...]:
        """Return what a pass through ``root`` writes into a dictionary that a variable holds; nothing if unclear."""
        definitions = self._evaluator.flow.definitions(value) if isinstance(value, cst.Name) else []
        made = definitions[0] if len(definitions) == 1 else None
        if made is not None and made.path and isinstance(value, cst.Name) and not self._is_detached(value):
            return tuple(self._returned_beside(made, root)) if not self.is_changed(value) else ()
        if made is None or not isinstance(value, cst.Name) or not isinstance(made.value, cst.Dict) or made.path:
            return ()
        is_here = self._tree.within(made.node, root) and not self._evaluator.gradients.disabled(made.node)
        is_kept_so = is_here and not self._is_detached(value) and not self.is_changed(value)
        return elements(made.value) if is_kept_so else ()

    def _returned_beside(self, record: Binding, root: cst.CSTNode) -> Iterator[cst.Name]:
        """What a function returns in a dictionary and beside it: ``loss`` of ``log, loss = self.step(batch)``."""
        pairs = self._unpacked(record)
        made = self._written_out(pairs[record.path[0]][0]) if pairs else None
        entries = elements(made) if made is not None else ()
        for given, bound in pairs:
            if isinstance(given, cst.Name) and any(self.is_one(entry, given) for entry in entries):
                yield from self._reads(bound, root) if isinstance(bound, cst.Name) else ()

    def _unpacked(self, part: Binding) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """What a function of the file returns in a tuple, and where a statement puts each, a variable among them."""
        statement = self._evaluator.flow.statement(part.node)
        function = self._run(part.value) if len(part.path) == 1 else None
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        results = self._evaluator.definitions.results(function) if function is not None else []
        given = results[0] if len(results) == 1 else None
        if not isinstance(given, cst.Tuple) or not isinstance(target, cst.Tuple):
            return []
        if len(given.elements) != len(target.elements):
            return []
        return [(each.value, bound.value) for each, bound in zip(given.elements, target.elements, strict=True)]

    def _run(self, call: cst.CSTNode | None) -> cst.FunctionDef | None:
        """The function of the file that a call runs, also by an object: ``self.criterion(output, target)``."""
        if not isinstance(call, cst.Call):
            return None
        definitions = self._evaluator.definitions
        function = definitions.definition(call.func)
        if isinstance(function, cst.FunctionDef):
            is_settled = not definitions.is_overridden(function) and not gives_other(function, self._evaluator)
            return function if is_settled else None
        called = self._evaluator.value(call.func)
        if not isinstance(called.definition, cst.ClassDef) or called.kind is Kind.CLASS:
            return None
        return definitions.method(called.definition, "forward" if called.kind is Kind.MODULE else "__call__")

    def sums_up(self, record: cst.Name) -> bool:
        """Return whether a function adds up all items of a dictionary, so that none is anything but a loss."""
        for _ in range(_MAX_DEPTH):
            function = self._evaluator.definitions.enclosing_function(record) or self._tree.module
            sums = (call for call in self._tree.below(function, cst.Call) if identifier(call.func) == "sum")
            items = (method_call(call.args[0].value, "values") for call in sums if call.args)
            if any(each is not None and self.is_one(each.value, record) for each in items):
                return True
            found = self.returned(record)
            if found is None:
                return False
            record = found[0]
        return False

    def origin(self, record: cst.Name) -> cst.Dict | None:
        """Return the dictionary that is written out where a variable comes from, in whatever function."""
        for _ in range(_MAX_DEPTH):
            written = self._written_out(record)
            if written is not None:
                return written
            given, _ = self._handed_out(record)
            if not isinstance(given, cst.Name):
                return given if isinstance(given, cst.Dict) else None
            record = given
        return None

    def _written_out(self, record: cst.BaseExpression) -> cst.Dict | None:
        """The dictionary that a function writes out and leaves as it is."""
        if isinstance(record, cst.Dict) or not isinstance(record, cst.Name):
            return record if isinstance(record, cst.Dict) else None
        bindings = self._evaluator.flow.definitions(record)
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        is_left = not self._is_detached(record) and not self.is_changed(record)
        return made if isinstance(made, cst.Dict) and is_left else None

    def _reads(self, bound: cst.Name, root: cst.CSTNode) -> Iterator[cst.Name]:
        """A place that reads what a target binds."""
        same = (name for name in self._tree.below(root, cst.Name) if name.value == bound.value and name is not bound)
        reads = (n for n in same if any(b.node is bound for b in self._evaluator.flow.definitions(n)))
        yield from list(reads)[:1]

    def entry(self, value: cst.BaseExpression, root: cst.CSTNode) -> cst.BaseExpression:
        """Return what the pass through ``root`` put where ``losses["d"]`` is read; the value itself if unclear."""
        if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Name) or _key(value) is None:
            return value
        order = self._tree.order
        targets = (t for t in self._tree.below(root, cst.AssignTarget) if is_same(t.target, value))
        before = [target for target in targets if order(target) < order(value)]
        statement = self._tree.parent(before[-1]) if before else None
        if not isinstance(statement, cst.Assign) or self._evaluator.gradients.disabled(statement):
            return value
        inside = {id(block) for block, _ in self._evaluator.flow.blocks(value)}
        if not any(id(block) in inside for block, _ in self._evaluator.flow.blocks(statement)[:1]):
            return value
        names = (n for n in self._tree.below(root, cst.Name) if n.value == value.value.value and n is not value.value)
        between = (n for n in names if order(statement) < order(n) < order(value) and n is not _base(before[-1].target))
        return statement.value if all(map(self._is_plain_read, between)) else value

    def _is_plain_read(self, name: cst.Name) -> bool:
        """Whether a dictionary is only asked for an item, or is given another: ``losses["g"]``."""
        place = self._tree.parent(name)
        return isinstance(place, cst.Subscript) and place.value is name and _key(place) is not None

    def is_one(self, name: cst.BaseExpression, other: cst.Name) -> bool:
        """Return whether two names read the same variable, as the same statements bound it."""
        if not isinstance(name, cst.Name) or name.value != other.value:
            return False
        here, there = ({id(b.node) for b in self._evaluator.flow.definitions(each)} for each in (name, other))
        return bool(here) and here == there

    def _held(self, loss: cst.BaseExpression, depth: int = 0) -> Iterator[cst.Name]:
        """The dictionaries that a loss is taken from."""
        if isinstance(loss, cst.Call) and len(loss.args) == 1 and method_call(loss, "scale") is not None:
            loss = loss.args[0].value  # `scaler.scale(loss).backward()`
        if isinstance(loss, cst.Name):
            definitions = self._evaluator.flow.definitions(loss)
            made = definitions[0] if len(definitions) == 1 else None
            is_plain = made is not None and made.kind is BindingKind.ASSIGNMENT and not made.path
            if made is not None and made.path and depth < _MAX_DEPTH:
                yield from self._summed_beside(made, depth + 1)
            given = made.value if made is not None and is_plain else None
            if not isinstance(given, cst.BaseExpression) or isinstance(given, cst.Name):
                return
            loss = given
        if isinstance(loss, cst.BinaryOperation):  # `losses["a"] + 0.1 * losses["b"]`
            for side in self._terms(loss):
                yield from self._held(side, depth) if not isinstance(side, cst.Name) else ()
        if isinstance(loss, cst.Subscript) and isinstance(loss.value, cst.Name):
            index = loss.slice[0].slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                yield loss.value
        elif isinstance(loss, cst.Call) and self._evaluator.names.qualified(loss.func) == "builtins.sum" and loss.args:
            summed = loss.args[0].value
            items = method_call(summed, "values")
            if isinstance(summed, (cst.GeneratorExp, cst.ListComp)):
                items = method_call(summed.for_in.iter, "values", "items")
            if items is not None and isinstance(items.value, cst.Name):
                yield items.value

    def _summed_beside(self, total: Binding, depth: int) -> Iterator[cst.Name]:
        """The dictionary that a function returns beside the sum of its items: ``return sum(terms.values()), terms``."""
        pairs = self._unpacked(total)
        summed = list(self._held(pairs[total.path[0]][0], depth)) if pairs else []
        around = self._evaluator.definitions.enclosing_function(total.node) or self._tree.module
        for given, bound in pairs:
            if isinstance(given, cst.Name) and any(self.is_one(one, given) for one in summed):
                yield from self._reads(bound, around) if isinstance(bound, cst.Name) else ()

    def _terms(self, total: cst.BinaryOperation) -> tuple[cst.BaseExpression, ...]:
        """The sides of a sum, or that of a product which the other, a number, scales: two items may both do so."""
        sides = (total.left, total.right)
        if isinstance(total.operator, (cst.Add, cst.Subtract)):
            return sides
        scaled = tuple(side for side in sides if self._evaluator.value(side).kind is not Kind.NUMBER)
        return scaled if len(scaled) == 1 else ()

    def is_changed(self, record: cst.Name) -> bool:
        """Return whether a method puts something else into a dictionary: ``logs.update(loss=0)``."""
        function = self._evaluator.definitions.enclosing_function(record) or self._tree.module
        methods = (method_call(call, *CHANGES_KEYS) for call in self._tree.below(function, cst.Call))
        return any(method is not None and self.is_one(method.value, record) for method in methods)

    def may_lose_graph(self, record: cst.Name) -> bool:
        """Return whether something may detach the items that a dictionary is made with, or replace them.

        What is put into one that starts empty is all that it holds.
        """
        if self.is_changed(record) or self._is_reduced(record):
            return True
        bindings = self._evaluator.flow.definitions(record)
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        put = {_key(place) for place in self._stores(record)}
        if isinstance(made, cst.Dict):
            keys = {literal(e.key) for e in made.elements if isinstance(e, cst.DictElement)}
            return bool(keys) and not put.isdisjoint((None, *keys))
        return bool(put)

    def _is_detached(self, record: cst.Name, losses: Sequence[cst.Name] = ()) -> bool:
        """Whether an item is replaced by what may carry no graph, or a function may do so.

        What is put in before the item is differentiated (``losses``) carries one.
        """
        order = self._tree.order
        items = (item for name in losses if isinstance(item := self._tree.parent(name), cst.Subscript))
        read = {key: order(item) for item in items if (key := _key(item)) is not None}
        return any(order(p) > read.get(_key(p) or "", -1) for p in self._stores(record)) or self._is_reduced(record)

    def _stores(self, record: cst.Name) -> list[cst.Subscript]:
        """The places of a dictionary that the function around writes to."""
        function = self._evaluator.definitions.enclosing_function(record) or self._tree.module
        places = (target.target for target in self._tree.below(function, cst.AssignTarget))
        return [p for p in places if isinstance(p, cst.Subscript) and self.is_one(p.value, record)]

    def _is_reduced(self, record: cst.Name) -> bool:
        """Whether a function that is named for it may detach the items of a dictionary."""
        function = self._evaluator.definitions.enclosing_function(record) or self._tree.module
        calls = (call for call in self._tree.below(function, cst.Call) if _REDUCES.search(identifier(call.func)))
        calls = (call for call in calls if isinstance(self._tree.parent(call), cst.Expr))  # others may give another
        given = any(self.is_one(argument.value, record) for call in calls for argument in call.args)
        return given or any(self._writes_to(call, record) for call in self._tree.below(function, cst.Call))

    def _writes_to(self, call: cst.Call, record: cst.Name) -> bool:
        """Whether a call gives a dictionary to a function of the file that puts something into it."""
        arguments = [argument for argument in call.args if self.is_one(argument.value, record)]
        function = self._evaluator.definitions.definition(call.func) if arguments else None
        if not isinstance(function, cst.FunctionDef):
            return False
        taken = (parameter_for(function, each, call, self._evaluator.definitions) for each in arguments)
        names = {parameter.name.value for parameter in taken if parameter is not None}
        places = [target.target for target in self._tree.below(function.body, cst.AssignTarget)]
        places += [each.target for each in self._tree.below(function.body, cst.AugAssign)]
        puts = (method_call(each, *CHANGES_KEYS) for each in self._tree.below(function.body, cst.Call))
        changed = [place.value for place in places if isinstance(place, cst.Subscript)]
        changed += [put.value for put in puts if put is not None]
        return any(isinstance(each, cst.Name) and each.value in names for each in changed)


def _key(place: cst.Subscript) -> str | None:
    """Return the key of ``losses["d"]``."""
    key = key_of(place)
    return key if isinstance(key, str) else None


def _base(place: cst.BaseExpression) -> cst.BaseExpression | None:
    return place.value if isinstance(place, cst.Subscript) else None
