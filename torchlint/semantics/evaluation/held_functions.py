"""Functions of the file that something may hold which is called: parameters, elements of tables, objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.tables.container_methods import APPENDS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.remembered import remembered

Code: TypeAlias = cst.FunctionDef | cst.Lambda

_CODE = (cst.FunctionDef, cst.Lambda)
_CALLED = ("__call__", "forward")
_OBJECTS = frozenset((Kind.INSTANCE, Kind.MODULE))
_PASSES_ON = frozenset(("builtins.enumerate", "builtins.list", "builtins.tuple", "builtins.reversed", "builtins.zip"))
_MAX_DEPTH = 5


class HeldFunctions:
    """Follows what is called to where the file writes it down."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    @remembered
    def behind(self, called: cst.BaseExpression) -> list[Code]:
        """Return the functions, lambdas and methods of the file that calling an expression may run."""
        return list(self._held(called, 0))

    def handed_to(self, call: cst.Call) -> list[Code]:
        """Return the functions of the file that a call is given by name: ``map(f, items)``."""
        named = (self._evaluator.definitions.definition(argument.value) for argument in call.args)
        return [function for function in named if isinstance(function, cst.FunctionDef)]

    def _held(self, held: cst.BaseExpression | Code, depth: int) -> Iterator[Code]:
        if depth > _MAX_DEPTH:
            return
        defined = held if isinstance(held, _CODE) else self._evaluator.definitions.definition(held)
        if isinstance(defined, _CODE):
            yield defined
            yield from self._evaluator.definitions.overriding(defined) if isinstance(defined, cst.FunctionDef) else ()
            return
        if isinstance(held, _CODE):
            return
        yield from self._methods(held, _CALLED)
        if isinstance(held, cst.Attribute):
            for owner in (held.value, *self._sources(held.value)):
                if isinstance(owner, cst.BaseExpression):
                    yield from self._methods(owner, (held.attr.value,))
        for source in self._sources(held):
            yield from self._held(source, depth + 1)
        for table in self._tables(held):
            for element in self._elements(table, depth + 1):
                yield from self._held(element, depth + 1)

    def _methods(self, held: cst.BaseExpression, names: tuple[str, ...]) -> Iterator[Code]:
        """The methods by some names of an object whose class the file defines."""
        value = self._evaluator.value(held)
        if value.kind in _OBJECTS and isinstance(value.definition, cst.ClassDef):
            for method in (self._evaluator.definitions.method(value.definition, name) for name in names):
                if method is not None:
                    yield method
                    yield from self._evaluator.definitions.overriding(method)

    def _sources(self, held: cst.BaseExpression) -> Iterator[cst.BaseExpression | Code]:
        """What an expression may be another name of."""
        if isinstance(held, cst.IfExp):
            yield from (held.body, held.orelse)
        elif isinstance(held, cst.Call):
            name = self._evaluator.names.qualified(held.func) if held.args else None
            if name == "functools.partial":
                yield held.args[0].value
            elif name == "builtins.getattr" and isinstance(held.args[0].value, cst.Name):
                owner = self._evaluator.definitions.receiver(held.args[0].value)
                yield from self._evaluator.definitions.methods(owner).values() if owner is not None else ()
        elif isinstance(held, cst.Attribute):
            yield from self._kept_as(held)
        elif isinstance(held, cst.Name):
            for binding in self._evaluator.flow.definitions(held):
                if binding.kind is BindingKind.PARAMETER:
                    yield from passed_for(binding, self._evaluator)
                    yield from self._decorated_by(binding.node)
                if binding.kind in (BindingKind.PARAMETER, BindingKind.ASSIGNMENT) and binding.part is not None:
                    yield binding.part

    def _decorated_by(self, parameter: cst.CSTNode) -> Iterator[Code]:
        """The functions that a parameter stands for because it is that of a decorator, or of what one gives."""
        maker = self._tree.enclosing(parameter, cst.FunctionDef)
        around = self._evaluator.definitions.enclosing_function(maker) if maker is not None else None
        for function in self._tree.nodes(cst.FunctionDef):
            for named in (d.decorator for d in function.decorators):
                called = self._evaluator.definitions.definition(named.func if isinstance(named, cst.Call) else named)
                if called is not None and (called is maker or called is around):
                    yield function

    def _kept_as(self, attribute: cst.Attribute) -> Iterator[cst.BaseExpression]:
        """What the class of an object assigns to an attribute of it."""
        definitions, of = self._evaluator.definitions, attribute.value
        owner = definitions.receiver(of) if isinstance(of, cst.Name) else None
        made = definitions.attribute(owner, attribute.attr.value) if owner is not None else []
        yield from (each.value for each in made if each.value is not None and not each.path)

    def _tables(self, held: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The tables and lists of which an expression may be an element."""
        if isinstance(held, cst.Subscript):
            yield held.value
        elif (method := method_call(held, "get", "pop")) is not None:
            yield method.value
        elif isinstance(held, cst.Name):
            bindings = self._evaluator.flow.definitions(held)
            yield from (b.value for b in bindings if b.kind is BindingKind.ITERATION and b.value is not None)

    def _elements(self, table: cst.BaseExpression | Code, depth: int) -> Iterator[cst.BaseExpression]:
        """What a table or list may hold: written out, or put into it later."""
        if depth > _MAX_DEPTH:
            return
        method = method_call(table, "items", "values")
        if isinstance(table, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            yield from (e.value for e in table.elements)
        elif isinstance(table, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            yield table.elt
        elif isinstance(table, cst.DictComp):
            yield table.value
        elif isinstance(table, cst.Call) and self._evaluator.names.qualified(table.func) == "builtins.dict":
            yield from (argument.value for argument in table.args)
        elif method is not None:
            yield from self._elements(method.value, depth)
        elif isinstance(table, cst.Call) and self._evaluator.names.qualified(table.func) in _PASSES_ON:
            for argument in table.args:
                yield from self._elements(argument.value, depth + 1)
        elif isinstance(table, (cst.Name, cst.Attribute)):
            for source in self._sources(table):
                yield from self._elements(source, depth + 1)
            yield from self._put.get(identifier(table), ())

    @cached_property
    def _put(self) -> dict[str, list[cst.BaseExpression]]:
        """What is put into tables, by their names: ``hooks.append(f)``, ``METHODS["a"] = f``."""
        found: dict[str, list[cst.BaseExpression]] = {}
        for call in self._tree.nodes(cst.Call):
            method = method_call(call, *APPENDS, "insert")
            if method is not None and call.args:
                found.setdefault(identifier(method.value), []).append(call.args[-1].value)
        for statement in self._tree.nodes(cst.Assign):
            places = (target.target for target in statement.targets)
            for table in {identifier(place) for place in places if isinstance(place, cst.Subscript)}:
                found.setdefault(table, []).append(statement.value)
        return found
