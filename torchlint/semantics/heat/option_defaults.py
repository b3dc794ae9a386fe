"""What options, settings and parameters of a file are unless somebody asks for something else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.unknown_calls import passed_for
from torchlint.semantics.process.first_process import tells_process
from torchlint.syntax.calls import bind, element_at, identifier, is_none, literal, method_call
from torchlint.syntax.canonical import canonical, is_same

_MOST = 10**12  # no count of steps
_DEPTH = 5
"""Through how many operations and variables a number is computed."""


class OptionDefaults:
    """Answers what is off by default."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def is_option(self, name: str) -> bool:
        """Return whether the file defines an option or setting of this name that is off by default."""
        return name in self._off

    @cached_property
    def _off(self) -> frozenset[str]:
        return frozenset(name for name, default in self._settings if default is False)

    @cached_property
    def _settings(self) -> tuple[tuple[str, bool | int | float | str | None], ...]:
        return tuple(self._find_settings())

    def is_on(self, test: cst.Name | cst.Attribute) -> bool:
        """Return whether a variable is an option or parameter that is True by default, and nothing turns it off."""
        if self.of_option(test) is not True:
            return False
        name = identifier(test)
        same = [default for setting, default in self._settings if setting == name]
        return all(default is True for default in same) and self._is_left_on(test, name)

    def _is_left_on(self, test: cst.Name | cst.Attribute, name: str) -> bool:
        """Whether nothing that the file gives an option or parameter turns it off."""
        return all(map(self._leaves_on, self._given(test, name))) and not self._is_assigned(name)

    def _given(self, test: cst.Name | cst.Attribute, name: str) -> Iterator[cst.BaseExpression]:
        """What the file gives an option or parameter of a name: by keyword or by position."""
        yield from (a.value for a in self._tree.nodes(cst.Arg) if a.keyword is not None and a.keyword.value == name)
        held = [test] if isinstance(test, cst.Name) else [each for each in self._held(test) if each is not None]
        for variable in held:
            for binding in self._evaluator.flow.definitions(variable):
                yield from passed_for(binding, self._evaluator)

    def _is_assigned(self, name: str) -> bool:
        """Whether the file assigns what may not be True to an attribute of a name: ``cfg.verbose = args.verbose``."""
        statements = (s for s in self._tree.nodes(cst.Assign) if isinstance(s.targets[0].target, cst.Attribute))
        given = (s.value for s in statements if identifier(s.targets[0].target) == name)
        return not all(
            identifier(each) != name and self.of_option(each) is True
            if isinstance(each, cst.Attribute)
            else self._leaves_on(each)
            for each in given
        )

    def _leaves_on(self, given: cst.BaseExpression) -> bool:
        """Whether what is given is True, a variable that is handed on, or tells whether this is the first process."""
        known = literal(given)
        return known is True or (known is None and isinstance(given, (cst.Name, cst.Attribute))) or tells_process(given)

    def of_parameter(self, name: cst.Name) -> bool | int | float | str | None:
        """Return the constant that a parameter is by default, where nothing binds its name again."""
        definitions = self._evaluator.flow.definitions(name)
        is_parameter = len(definitions) == 1 and definitions[0].kind is BindingKind.PARAMETER
        return literal(definitions[0].value) if is_parameter else None

    def of_option(self, expression: cst.BaseExpression, depth: int = _DEPTH) -> bool | int | float | str | None:
        """Return the constant that an expression is by default: a parameter, also kept by ``self``, or an option.

        Also a constant of a class or of a dictionary that is written out, and a product or quotient of such ones.
        """
        known = literal(expression)
        if known is not None or depth == 0:
            return known
        if isinstance(expression, cst.BinaryOperation):
            return self._computed(expression, depth - 1)
        if isinstance(expression, cst.Call):
            is_whole = self._evaluator.names.qualified(expression.func) == "builtins.int" and len(expression.args) == 1
            given = self.of_option(expression.args[0].value, depth - 1) if is_whole else None
            return int(given) if isinstance(given, (int, float)) and abs(given) < _MOST else None
        if isinstance(expression, cst.Subscript):
            return self._item(expression)
        if isinstance(expression, cst.Name):
            return self._of_variable(expression, depth - 1)
        return self._of_attribute(expression) if isinstance(expression, cst.Attribute) else None

    def _of_variable(self, name: cst.Name, depth: int) -> bool | int | float | str | None:
        bound = self._evaluator.value(name).literal
        found = self.of_parameter(name) if bound is None else bound
        bindings = self._evaluator.flow.definitions(name) if found is None else []
        is_assigned = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT
        part = bindings[0].part if is_assigned else None
        return found if part is None else self.of_option(part, depth)

    def _of_attribute(self, attribute: cst.Attribute) -> bool | int | float | str | None:
        held = self._held(attribute)
        if len(held) == 1 and held[0] is not None:
            return self.of_parameter(held[0])
        constant = self._of_class(attribute)
        if constant is not None:
            return constant
        return next((default for name, default in self._settings if name == attribute.attr.value), None)

    def _of_class(self, attribute: cst.Attribute) -> bool | int | float | str | None:
        """What a class says once and never again: ``EVERY = 8``, read by ``self.EVERY`` or ``Settings.EVERY``."""
        definitions = self._evaluator.definitions
        owner = definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
        named = definitions.definition(attribute.value) if owner is None else owner
        bound = definitions.attribute(named, attribute.attr.value) if isinstance(named, cst.ClassDef) else []
        if len(bound) != 1 or isinstance(bound[0].node, cst.AugAssign):
            return None
        return literal(element_at(bound[0].value, bound[0].path))

    def _item(self, item: cst.Subscript) -> bool | int | float | str | None:
        """The constant under a key of a dictionary that is written out and not changed there: ``CONFIG["every"]``."""
        index = item.slice[0].slice
        key = literal(index.value) if isinstance(index, cst.Index) and len(item.slice) == 1 else None
        bindings = self._evaluator.flow.definitions(item.value) if isinstance(item.value, cst.Name) else []
        if not isinstance(key, str) or len(bindings) != 1 or not isinstance(bindings[0].part, cst.Dict):
            return None
        puts = (node for node in self._tree.nodes(cst.AssignTarget) if isinstance(node.target, cst.Subscript))
        calls = (call for call in self._tree.calls_named("update") if method_call(call) is not None)
        if any(is_same(put.target, item) for put in puts) or any(
            isinstance(call.func, cst.Attribute) and is_same(call.func.value, item.value) for call in calls
        ):
            return None
        entries = (e for e in bindings[0].part.elements if isinstance(e, cst.DictElement) and literal(e.key) == key)
        return next((literal(entry.value) for entry in entries), None)

    def _computed(self, operation: cst.BinaryOperation, depth: int) -> int | float | None:
        left, right = self.of_option(operation.left, depth), self.of_option(operation.right, depth)
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            return None
        if isinstance(operation.operator, cst.Multiply):
            return left * right
        if not isinstance(operation.operator, (cst.FloorDivide, cst.Divide)) or not right:
            return None
        if max(abs(left), abs(right)) >= _MOST:
            return None
        return left // right if isinstance(operation.operator, cst.FloorDivide) else left / right

    def fails(self, option: cst.BaseExpression, target: cst.ComparisonTarget) -> bool:
        """Return whether what an option is by default is too little: ``if verbosity > 1``, where that is 0."""
        default, limit = self.of_option(option), literal(target.comparator)
        if not isinstance(default, int) or not isinstance(limit, int):
            return False
        if isinstance(target.operator, cst.GreaterThan):
            return default <= limit
        return isinstance(target.operator, cst.GreaterThanEqual) and default < limit

    def _find_settings(self) -> Iterator[tuple[str, bool | int | float | str | None]]:
        """Yield the name and the default of each option of the command line, and of each field of a data class."""
        for call in self._tree.nodes(cst.Call):
            if not isinstance(call.func, cst.Attribute) or not call.args:
                continue
            if call.func.attr.value.startswith("DEFINE_") and len(call.args) > 1:  # those of absl
                name = literal(call.args[0].value)
                yield from ((name, literal(call.args[1].value)),) if isinstance(name, str) else ()
            if call.func.attr.value != "add_argument":
                continue
            given = {a.keyword.value: literal(a.value) for a in call.args if a.keyword is not None}
            action, default = given.get("action"), given.get("default")
            if action in ("store_true", "store_false") and default is None:
                default = action == "store_false"
            options = [given.get("dest") or literal(a.value) for a in call.args if a.keyword is None]
            yield from ((o.lstrip("-").replace("-", "_"), default) for o in options if isinstance(o, str))
        for setting in self._tree.nodes(cst.AnnAssign):
            in_class = self._tree.enclosing(setting, cst.ClassDef, cst.FunctionDef)
            if isinstance(in_class, cst.ClassDef) and in_class.decorators:
                yield identifier(setting.target), literal(setting.value)

    def is_off(self, test: cst.Name | cst.Attribute) -> bool:
        """Return whether a variable is a parameter that is False by default, or ``self.flag`` only holds such a one.

        The file turns none of these on.
        """
        if isinstance(test, cst.Name):
            return self.of_parameter(test) is False
        held = self._held(test)
        off = (name and self.of_parameter(name) is False and not self._is_turned_on(name) for name in held)
        return bool(held) and all(off)

    def is_set(self, attribute: cst.Attribute) -> bool:
        """Return whether ``self.momentum`` only holds a parameter that is no None unless somebody says so."""
        held = self._held(attribute)
        return bool(held) and all(name and self.of_parameter(name) is not None for name in held)

    def is_file(self, variable: cst.BaseExpression) -> bool:
        """Return whether a variable is None unless somebody names a file, which it then holds open to be written."""
        if isinstance(variable, cst.Name):
            bound = [binding.part for binding in self._evaluator.flow.definitions(variable)]
        else:
            bound = self._assigned(variable) if isinstance(variable, cst.Attribute) else []
        held = [part for value in bound for part in _alternatives(value)]
        opened = [each for each in held if isinstance(each, cst.Call) and self._opens_if_named(each)]
        return bool(opened) and len(opened) < len(held) and all(is_none(each) or each in opened for each in held)

    def _opens_if_named(self, call: cst.Call) -> bool:
        """Whether a call opens a file to write to it, where a test finds its path, which no default names."""
        given = bind(call.args, ("file", "mode"))
        path, mode = given.get("file"), literal(given.get("mode"))
        if self._evaluator.names.qualified(call.func) != "builtins.open" or not isinstance(mode, str):
            return False
        choice = self._tree.enclosing(call, cst.If, cst.IfExp, cst.FunctionDef)
        test = choice.test if isinstance(choice, (cst.If, cst.IfExp)) else None
        if path is None or test is None or mode[:1] not in ("w", "a", "x") or isinstance(self.of_option(path), str):
            return False
        return any(is_same(part, path) for part in (test, *self._tree.descendants(test)))

    def _held(self, attribute: cst.Attribute) -> list[cst.Name | None]:
        """The variables that a class assigns to an attribute of ``self``; None for anything else."""
        return [value if isinstance(value, cst.Name) else None for value in self._assigned(attribute)]

    def _assigned(self, attribute: cst.Attribute) -> list[cst.BaseExpression | None]:
        """What a class assigns to an attribute of ``self``."""
        definitions = self._evaluator.definitions
        owner = definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
        bindings = definitions.attribute(owner, attribute.attr.value) if owner is not None else []
        return [element_at(b.value, b.path) for b in bindings if not isinstance(b.node, cst.AugAssign)]

    def _is_turned_on(self, name: cst.Name) -> bool:
        """Whether a call in the file gives a parameter a value of its own, by keyword or by position."""
        for argument in self._tree.nodes(cst.Arg):
            if argument.keyword is not None and argument.keyword.value == name.value:
                handed_on = isinstance(argument.value, (cst.Name, cst.Attribute)) and canonical(argument.value) in (
                    name.value,
                    f"self.{name.value}",
                )
                if literal(argument.value) is not False and not handed_on:
                    return True
        function = self._evaluator.definitions.enclosing_function(name)
        if function is None:
            return False
        names = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
        place = names.index(name.value) - 1 if name.value in names else len(names)
        positional = (sum(a.keyword is None for a in c.args) for c in self._evaluator.callers(function))
        return any(count > place for count in positional)


def _alternatives(value: cst.BaseExpression | None) -> tuple[cst.BaseExpression | None, ...]:
    """Return both branches of what is chosen among two: ``open(path, "w") if path else None``."""
    return (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
