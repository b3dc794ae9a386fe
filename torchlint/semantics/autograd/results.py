"""Losses that functions of the file return, once they are differentiated or for their callers to do that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from torchlint.semantics.autograd.differentiated import PASSES_ON, Differentiated
from torchlint.semantics.autograd.passes import Passes
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.decorated import gives_other
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import element_at, is_none, literal, method_call
from torchlint.syntax.canonical import is_same

_DICTS = frozenset(("builtins.dict", "collections.OrderedDict"))
_ALL = "*"
"""The place in a path of whatever a dictionary holds."""


class Results:
    """Follows losses through calls."""

    def __init__(self, evaluator: Evaluator, passes: Passes, upstream: Differentiated) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._passes = passes
        self._upstream = upstream
        self._wanted: dict[int, list[cst.BaseExpression]] = {}

    def differentiates(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a value is part of a loss that a function returns, whichever side differentiates it."""
        if self._is_result_of_step(value) or self._is_item(value, root):
            return True
        if isinstance(value, cst.Attribute) and self._is_loss_of(self._holder(value), value.attr.value):
            return True
        function = self._evaluator.definitions.enclosing_function(value)
        return function is not None and self._upstream.includes(value, function, self._of_callers(function))

    def _of_callers(self, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """The values that a function returns and a caller in the file differentiates."""
        key = id(function)
        if key not in self._wanted:
            self._wanted[key] = []  # until it is known, for functions that call each other
            calls = [*self._evaluator.callers(function), *self._passes_through(function)]
            parts = [part for call in calls for part in self._differentiated(call)]
            results = self._evaluator.definitions.results(function)
            given = [element_at(result, part) if part else result for result in results for part in parts]
            self._wanted[key] = [loss for loss in given if loss is not None]
        return self._wanted[key]

    def _passes_through(self, function: cst.FunctionDef) -> Iterator[cst.Call]:
        """Yield the calls of models of the file whose forward pass a function is: ``loss = model(x)``."""
        owner = self._evaluator.definitions.owner(function) if function.name.value == "forward" else None
        if owner is not None:
            for call in self._tree.nodes(cst.Call):
                called = self._evaluator.value(call.func)
                if called.kind is Kind.MODULE and called.definition is owner:
                    yield call

    def _differentiated(self, call: cst.Call) -> list[tuple[int, ...]]:
        """Which parts of the result of a call its function differentiates; ``()`` for all of it."""
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        losses = self._passes.losses(frame)
        if isinstance(frame, cst.FunctionDef):
            losses += self._of_callers(frame)
        if any(loss is call for loss in losses):
            return [()]
        result: cst.BaseExpression = call
        while (method := self._method_of(result)) is not None and method_call(method, *PASSES_ON) is not None:
            result = method
        if any(loss is result for loss in losses):
            return [()]
        statement = self._tree.parent(result)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            return []
        target = statement.targets[0].target
        if not isinstance(target, cst.Tuple):
            return [()] if self._upstream.starts_from(target, losses) else []
        return [(i,) for i, e in enumerate(target.elements) if self._upstream.starts_from(e.value, losses)]

    def _method_of(self, value: cst.BaseExpression) -> cst.Call | None:
        """The call of a method of what an expression gives: ``model(x).mean()``."""
        attribute = self._tree.parent(value)
        call = self._tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        return call if isinstance(call, cst.Call) and call.func is attribute else None

    def _is_item(self, value: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Whether a value is an item of a dictionary of losses that a function gave, one of which is differentiated.

        ``terms = losses(x); terms["total"].backward(); history[k].append(terms[k])``
        """
        if isinstance(value, cst.BinaryOperation):
            return any(self._is_item(side, root) for side in _summands(value))
        held = value.value if isinstance(value, cst.Subscript) else self._upstream.iterated(value)
        call, path = self._made(held) if isinstance(held, cst.Name) else (None, ())
        function = (self._evaluator.definitions.definition(call.func) or self._method(call)) if call else None
        if not isinstance(function, cst.FunctionDef) or path or not isinstance(held, cst.Name):
            return False
        if not self._is_settled(function):
            return False
        if any(isinstance(t.target, cst.Subscript) and is_same(t.target.value, held) for t in self._targets(root)):
            return False
        results = self._evaluator.definitions.results(function)
        keys = {_key(loss) for loss in self._passes.losses(root) if self._is_item_of(loss, held)} - {_ALL}
        starts = [part for result in results for key in keys for part in self._parts_at(result, (key,))]
        key = _key(value) if isinstance(value, cst.Subscript) else _ALL
        parts = [part for result in results for part in self._parts_at(result, (key,))]
        if not starts or not parts or None in starts or None in parts:
            return False
        losses = [start for start in starts if start is not None]
        carry = [p is not None and self._upstream.includes(p, function, losses) for p in parts]
        return any(carry) and all(p is not None and self._evaluator.value(p).is_tensor for p in parts)

    def _targets(self, root: cst.CSTNode) -> list[cst.AssignTarget]:
        return self._tree.below(root, cst.AssignTarget)

    def _is_item_of(self, loss: cst.BaseExpression, held: cst.Name) -> bool:
        if (
            not isinstance(loss, cst.Subscript)
            or not isinstance(loss.value, cst.Name)
            or loss.value.value != held.value
        ):
            return False
        here, there = ({id(b.node) for b in self._evaluator.flow.definitions(n)} for n in (loss.value, held))
        return here == there

    def _is_result_of_step(self, value: cst.BaseExpression) -> bool:
        """Whether a value is what a function of the file returns after it has differentiated just that."""
        if isinstance(value, cst.BinaryOperation):
            return any(self._is_result_of_step(side) for side in _summands(value))
        if (method := method_call(value, *PASSES_ON)) is not None:
            return self._is_result_of_step(method.value)
        call, path = self._made(value)
        function = self._evaluator.definitions.definition(call.func) or self._method(call) if call else None
        if not isinstance(function, cst.FunctionDef) or not self._is_settled(function):
            return False
        losses = self._passes.losses(function)
        around = self._evaluator.definitions.enclosing_function
        returns = [r.value for r in self._tree.nodes(cst.Return) if around(r) is function]
        returned = [given for given in returns if given is not None and not is_none(given)]
        parts = [part for given in returned for part in self._parts_at(given, path)]
        if len(returned) < len(returns) and not self._is_tested(value):
            return False
        owner = self._evaluator.definitions.owner(function)
        return bool(parts) and all(
            part is not None
            and (
                self._upstream.includes(part, function, losses)
                or (isinstance(part, cst.Attribute) and self._is_loss_of(owner, part.attr.value))
            )
            for part in parts
        )

    def _is_loss_of(self, owner: cst.ClassDef | None, name: str) -> bool:
        """Whether methods of a class differentiate an attribute of its objects: ``self.loss_G.backward()``."""
        bound = self._evaluator.definitions.attribute(owner, name) if owner is not None else []
        held = next((each.node for each in bound if isinstance(each.node, cst.Attribute)), None)
        methods = {id(f): f for f in map(self._evaluator.definitions.enclosing_function, self._passes.below()) if f}
        if held is None or any(self._upstream.detaches(each.value) for each in bound if each.value is not None):
            return False
        return any(
            self._evaluator.definitions.owner(method) is owner
            and self._upstream.includes(held, method, self._passes.losses(method))
            for method in methods.values()
        )

    def _holder(self, value: cst.Attribute) -> cst.ClassDef | None:
        """The class of the file whose object an attribute is read from, other than by a method of its own."""
        holder = self._evaluator.value(value.value)
        if isinstance(holder.definition, cst.ClassDef):
            return holder.definition
        if holder.evidence > Evidence.NAMED and holder.known:
            return None
        binds = self._evaluator.definitions.attribute
        owners = [c for c in self._tree.nodes(cst.ClassDef) if binds(c, value.attr.value)]
        return owners[0] if len(owners) == 1 else None

    def _parts_at(self, given: cst.BaseExpression, path: tuple[int | str, ...]) -> list[cst.BaseExpression | None]:
        """The parts of what a function returns on a path; None for one that is not written out there."""
        if isinstance(given, cst.Dict) and path == (_ALL,):
            return [e.value if isinstance(e, cst.DictElement) else None for e in given.elements]
        if not isinstance(given, cst.Name) or len(path) != 1 or not isinstance(path[0], str):
            return [_part_at(given, path)]
        definitions = self._evaluator.flow.definitions(given)
        made = definitions[0].value if len(definitions) == 1 and not definitions[0].path else None
        is_empty = isinstance(made, cst.Call) and not made.args and self._evaluator.names.qualified(made.func) in _DICTS
        if not isinstance(made, cst.Dict) and not is_empty:
            return [None]
        found: dict[object, cst.BaseExpression] = {}
        for element in made.elements if isinstance(made, cst.Dict) else ():
            found[literal(element.key) if isinstance(element, cst.DictElement) else None] = element.value
        function = self._evaluator.definitions.enclosing_function(given) or self._tree.module
        for place in self._tree.below(function, cst.Subscript):  # where it is read, as a part of the loss, or set
            if is_same(place.value, given):
                target, index = self._tree.parent(place), place.slice[0].slice
                statement = self._tree.parent(target) if isinstance(target, cst.AssignTarget) else None
                key = literal(index.value) if isinstance(index, cst.Index) else None
                found[key] = statement.value if isinstance(statement, cst.Assign) else place
        if None in found:
            return [None]
        return [*found.values()] if path[0] == _ALL else [found.get(path[0])]

    def _made(self, value: cst.BaseExpression) -> tuple[cst.Call | None, tuple[int | str, ...]]:
        """The call that gives a value, and which part of its result it is: ``step(x)``, ``step(x)["loss"]``."""
        if isinstance(value, cst.Subscript):
            call, path = self._made(value.value)
            index = value.slice[0].slice
            key = literal(index.value) if isinstance(index, cst.Index) and len(value.slice) == 1 else None
            return (call, (*path, key)) if isinstance(key, (int, str)) else (None, ())
        if not isinstance(value, cst.Name):
            return (value if isinstance(value, cst.Call) else None), ()
        items = self._upstream.iterated(value)
        if isinstance(items, cst.Name):
            call, path = self._made(items)
            return call, (*path, _ALL)
        definitions = self._evaluator.flow.definitions(value)
        if len(definitions) != 1 or definitions[0].kind is not BindingKind.ASSIGNMENT:
            return None, ()
        given = definitions[0].value
        return (given if isinstance(given, cst.Call) else None), definitions[0].path

    def _is_tested(self, value: cst.BaseExpression) -> bool:
        """Whether a variable is read where a test of it holds: ``if loss is not None: losses.append(loss)``."""
        around = list(self._tree.ancestors(value))
        branches = (a for child, a in pairwise(around) if isinstance(a, cst.If) and child is a.body)
        return any(is_same(value, node) for branch in branches for node in self._tree.descendants(branch.test))

    def _method(self, call: cst.Call) -> cst.FunctionDef | None:
        """The method of a class of the file that ``agent.learn()`` runs."""
        if not isinstance(call.func, cst.Attribute):
            return None
        name = call.func.attr.value
        holder = self._evaluator.value(call.func.value)
        owner = holder.definition if holder.kind is not Kind.CLASS else None
        if owner is None:
            named = (f for f in self._tree.nodes(cst.FunctionDef) if f.name.value == name)
            callers = self._evaluator.callers
            method = next((f for f in named if any(call is each for each in callers(f))), None)
            owner = self._evaluator.definitions.owner(method) if method is not None else None
        return self._evaluator.definitions.method(owner, name) if isinstance(owner, cst.ClassDef) else None

    def _is_settled(self, function: cst.FunctionDef) -> bool:
        """Whether a call gives just what a function returns: no decorator gives something else, nor a heir."""
        return not gives_other(function, self._evaluator) and not self._evaluator.definitions.is_overridden(function)


def _summands(operation: cst.BinaryOperation) -> Iterator[cst.BaseExpression]:
    """Yield the sides of an operation that carry their graph into its result."""
    if isinstance(operation.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
        yield operation.left
        if not isinstance(operation.operator, cst.Divide):
            yield operation.right


def _part_at(value: cst.BaseExpression, path: tuple[int | str, ...]) -> cst.BaseExpression | None:
    """Return the part of what is written as a tuple or a dictionary, None where it is not written so."""
    part: cst.BaseExpression | None = value
    for step in path:
        if part is None:
            return None
        if isinstance(step, int):
            part = element_at(part, (step,))
        else:
            pairs = [e for e in part.elements if isinstance(e, cst.DictElement)] if isinstance(part, cst.Dict) else []
            part = next((pair.value for pair in pairs if literal(pair.key) == step), None)
    return part


def _key(place: cst.BaseExpression) -> str:
    """Return the key of ``losses["d"]``, that of all items where it is not written out."""
    index = place.slice[0].slice if isinstance(place, cst.Subscript) and len(place.slice) == 1 else None
    key = literal(index.value) if isinstance(index, cst.Index) else None
    return key if isinstance(key, str) else _ALL
