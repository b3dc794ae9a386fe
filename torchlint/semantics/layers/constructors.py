"""Which classes a call can be creating an instance of, through variables, parameters, attributes and partials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.arguments import argument_for
from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import is_none, literal

_PARTIAL = "functools.partial"
_REACH = 200
"""How many expressions one question may lead through."""


class Constructor(NamedTuple):
    """One class or function that a call can run."""

    name: str | None
    """The qualified name, None where it is not known."""

    definition: cst.FunctionDef | cst.ClassDef | None = None
    """The definition, where the file has it."""

    partial: cst.Call | None = None
    """The ``functools.partial`` that holds some of the arguments."""


UNKNOWN = Constructor(None)


class Constructors:
    """Answers are remembered. Within one question, an expression that is come to again adds nothing."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._known: dict[int, frozenset[Constructor]] = {}
        self._seen: set[int] = set()
        self._keywords: dict[str, list[cst.BaseExpression]] | None = None

    def of(self, expression: cst.CSTNode) -> frozenset[Constructor]:
        """Return what calling an expression can run; empty for what is only ever None."""
        known = self._known.get(id(expression))
        if known is not None:
            return known
        if id(expression) in self._seen:
            return frozenset()
        if len(self._seen) > _REACH:
            return frozenset((UNKNOWN,))
        outermost = not self._seen
        self._seen.add(id(expression))
        found = frozenset(self._find(expression))
        if outermost:
            self._seen.clear()
            self._known[id(expression)] = found
        return found

    def _find(self, expression: cst.CSTNode) -> Iterable[Constructor]:
        if is_none(expression) or literal(expression) is not None:
            return ()
        name = self._evaluator.names.qualified(expression)
        if name is not None:
            return (Constructor(name),)
        definition = self._evaluator.definitions.definition(expression)
        if definition is not None:
            return (Constructor(None, definition),)
        if isinstance(expression, cst.Name):
            return self._of_name(expression)
        if isinstance(expression, cst.Attribute):
            return self._of_attribute(expression)
        if isinstance(expression, cst.IfExp):
            return self.of(expression.body) | self.of(expression.orelse)
        if isinstance(expression, cst.BooleanOperation):
            return self.of(expression.left) | self.of(expression.right)
        if isinstance(expression, cst.Call):
            return self._of_call(expression)
        if isinstance(expression, cst.Subscript):
            return self._of_table(expression.value)
        return (UNKNOWN,)

    def _of_call(self, call: cst.Call) -> Iterable[Constructor]:
        name = self._evaluator.names.qualified(call.func)
        if name == _PARTIAL and call.args and not call.args[0].star:
            made = self.of(call.args[0].value)
            return (Constructor(c.name, c.definition, call) if c.partial is None else UNKNOWN for c in made)
        if name == "builtins.getattr" and len(call.args) >= 2:
            module, attribute = self._evaluator.names.qualified(call.args[0].value), literal(call.args[1].value)
            return (Constructor(f"{module}.{attribute}" if module and isinstance(attribute, str) else None),)
        definition = self._evaluator.definitions.definition(call.func)
        if isinstance(definition, cst.FunctionDef):
            returned = [
                statement.value
                for statement in self._tree.nodes(cst.Return)
                if statement.value is not None
                and self._evaluator.definitions.enclosing_function(statement) is definition
            ]
            return (c for value in returned for c in self.of(value))
        return (UNKNOWN,)

    def _of_table(self, table: cst.BaseExpression) -> Iterable[Constructor]:
        """``{"batch": nn.BatchNorm2d, "instance": nn.InstanceNorm2d}[kind]`` can be any of its values."""
        if isinstance(table, cst.Name):
            bindings = self._evaluator.flow.definitions(table)
            if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and bindings[0].value is not None:
                return self._of_table(bindings[0].value) if not bindings[0].path else (UNKNOWN,)
        if isinstance(table, cst.Dict):
            return (c for element in table.elements for c in self.of(element.value))
        return (UNKNOWN,)

    def _of_name(self, name: cst.Name) -> Iterator[Constructor]:
        bindings = self._evaluator.flow.definitions(name)
        if not bindings:
            yield UNKNOWN
        for binding in bindings:
            if binding.kind is BindingKind.PARAMETER:
                yield from self._of_parameter(binding)
            elif binding.kind is BindingKind.ASSIGNMENT and binding.value is not None and not binding.path:
                yield from self.of(binding.value)
            elif isinstance(binding.node, (cst.FunctionDef, cst.ClassDef)):
                yield Constructor(None, binding.node)
            elif binding.imported is not None:
                yield Constructor(binding.imported)
            else:
                yield UNKNOWN

    def _of_attribute(self, attribute: cst.Attribute) -> Iterator[Constructor]:
        owner = isinstance(attribute.value, cst.Name) and self._evaluator.definitions.receiver(attribute.value)
        bindings = self._evaluator.definitions.attribute(owner, attribute.attr.value) if owner else []
        if not bindings:
            yield UNKNOWN
        for binding in bindings:
            yield from (UNKNOWN,) if binding.value is None or binding.path else self.of(binding.value)

    def _of_parameter(self, binding: Binding) -> Iterator[Constructor]:
        """A parameter can be its default, what callers pass, and what anything in the file passes by that name."""
        param, function = self._tree.parent(binding.node), binding.scope.node
        if not isinstance(param, cst.Param) or not isinstance(function, cst.FunctionDef) or param.star in ("*", "**"):
            yield UNKNOWN
            return
        found: set[Constructor] = set(self.of(param.default)) if param.default is not None else set()
        calls = self._evaluator.callers(function)
        passed = [
            a for call in calls if (a := argument_for(function, param, call, self._evaluator.definitions)) is not None
        ]
        if not passed and not found:
            passed = self._passed_by_name(binding.name)
        for argument in passed:
            found |= self.of(argument)
        if not passed and param.default is None:
            found.add(UNKNOWN)
        yield from found

    def _passed_by_name(self, name: str) -> list[cst.BaseExpression]:
        if self._keywords is None:
            self._keywords = {}
            for argument in self._tree.nodes(cst.Arg):
                if argument.keyword is not None:
                    self._keywords.setdefault(argument.keyword.value, []).append(argument.value)
        return self._keywords.get(name, [])
