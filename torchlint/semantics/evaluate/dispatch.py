"""Functions that a file runs without naming them in a call: out of a table, by their names, handed to a runner."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import root_of
from torchlint.syntax.walk import Tree

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_HANDS_ON = frozenset(("partial", "getattr", "get"))
_ASKS = ("builtins.isinstance", "builtins.issubclass", "builtins.type", "builtins.hasattr")

# Where gradients are on again: their mode is one of each thread.
_ELSEWHERE = ("torch.multiprocessing.", "multiprocessing.", "threading.", "concurrent.")

_ANY = r"[^_].*"


class Dispatch:
    """Answers whether a function may be run where gradients are off."""

    def __init__(self, tree: Tree, definitions: Definitions, evaluator: Evaluator) -> None:
        self._tree = tree
        self._definitions = definitions
        self._evaluator = evaluator
        self._followed: set[int] = set()

    def may_run(self, function: cst.FunctionDef) -> bool:
        """Return whether a function, or one that calls it, is a value, or has a name, that the file may run there."""
        return self._may_run(function, set())

    def _may_run(self, function: cst.FunctionDef, seen: set[int]) -> bool:
        if id(function) in seen:
            return False
        seen.add(id(function))
        if (
            (self._calls_values and self._is_value(function))
            or self._is_asked_for(function)
            or self._is_handed(function)
        ):
            return True
        callers = map(self._definitions.enclosing_function, self._evaluator.callers(function))
        return any(caller is not None and self._may_run(caller, seen) for caller in callers)

    def _is_off(self, place: cst.CSTNode) -> bool:
        return self._evaluator.gradients.disabled(place)

    def runs_lambda(self, function: cst.Lambda) -> bool:
        """Return whether a lambda is given to a function of the file that only calls it there."""
        argument = self._tree.parent(function)
        if not isinstance(argument, cst.Arg) or id(function) in self._followed:
            return False
        self._followed.add(id(function))
        found = self._is_run(argument)
        self._followed.discard(id(function))
        return found

    @cached_property
    def _calls_values(self) -> bool:
        """Whether the file calls there what no definition is known of: ``commands[name](model)``."""
        return any(self._is_of_value(call.func) and self._is_off(call) for call in self._tree.nodes(cst.Call))

    def _is_of_value(self, called: cst.BaseExpression) -> bool:
        if isinstance(called, cst.Subscript):
            return True
        if isinstance(called, cst.Attribute):
            return called.attr.value in self._chosen
        bound = self._evaluator.flow.definitions(called) if isinstance(called, cst.Name) else []
        if any(b.kind is BindingKind.ITERATION for b in bound):
            return True  # for hook in self.hooks: hook(model)
        made = (b.value.func if isinstance(b.value, cst.Call) else b.value for b in bound)
        return any(isinstance(v, cst.Subscript) or identifier(v) in _HANDS_ON for v in made if v is not None)

    @cached_property
    def _chosen(self) -> frozenset[str]:
        """The options that parsers of arguments set to functions: ``parser.set_defaults(run=evaluate)``."""
        calls = (call for call in self._tree.calls_named("set_defaults") if method_call(call) is not None)
        return frozenset(a.keyword.value for call in calls for a in call.args if a.keyword is not None)

    def _is_value(self, function: cst.FunctionDef) -> bool:
        """Whether a function, or a method of ``self``, is read without being called."""
        if self._is_registered(function):
            return True
        name = function.name.value
        attributes = self._tree.attributes_named(name)
        return any(
            read is not function.name
            and getattr(self._tree.parent(read), "func", None) is not read
            and self._definitions.definition(read) is function
            for read in (*self._tree.named(name), *attributes)
        )

    def _is_registered(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator of the file puts a function into a table: ``TASKS[function.__name__] = function``."""
        used = (each.decorator for each in function.decorators)
        named = (each.func if isinstance(each, cst.Call) else each for each in used)
        made = (self._definitions.definition(each) for each in named)
        puts = (put for f in made if isinstance(f, cst.FunctionDef) for put in self._tree.below(f.body, cst.Assign))
        into = (put.value for put in puts if isinstance(put.targets[0].target, cst.Subscript))
        given = (b for value in into if isinstance(value, cst.Name) for b in self._evaluator.flow.definitions(value))
        return any(binding.kind is BindingKind.PARAMETER for binding in given)

    @cached_property
    def _asked_names(self) -> list[tuple[re.Pattern[str], cst.ClassDef | None]]:
        """The names of what the file runs there by ``getattr(self, f"eval_{kind}")(x)``, and of which class if told."""
        found = []
        for call in self._tree.nodes(cst.Call):
            name, held = self._got(call.func)
            if name is None or not self._is_off(call):
                continue
            owner = self._definitions.receiver(held) if isinstance(held, cst.Name) else None
            made = self._evaluator.value(held).definition if held is not None and owner is None else owner
            pattern = _pattern(name)
            is_of_file = held is None or isinstance(held, cst.Subscript) or isinstance(made, cst.ClassDef)
            if is_of_file or (pattern != _ANY and not self._is_imported(held)):
                found.append((re.compile(pattern), made if isinstance(made, cst.ClassDef) else None))
        return found

    def _is_imported(self, held: cst.BaseExpression | None) -> bool:
        return held is not None and self._evaluator.names.qualified(held) is not None

    def _got(self, called: cst.BaseExpression) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
        """By which name, and of what, something is got that is called, at once or by a variable."""
        value: cst.CSTNode | None = called
        if isinstance(called, cst.Name):
            bound = self._evaluator.flow.definitions(called)
            value = bound[0].value if len(bound) == 1 and not bound[0].path else None
        if isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Index):
            named = value.value.func if isinstance(value.value, cst.Call) else value
            index = value.slice[0].slice.value
            return (index, None) if self._evaluator.names.qualified(named) == "builtins.globals" else (None, None)
        if not isinstance(value, cst.Call) or len(value.args) < 2:
            return None, None
        is_got = self._evaluator.names.qualified(value.func) == "builtins.getattr"
        return (value.args[1].value, value.args[0].value) if is_got else (None, None)

    def _is_asked_for(self, function: cst.FunctionDef) -> bool:
        """Whether a function that the file calls nowhere else is run there by its name."""
        if not self._asked_names or self._evaluator.is_called(function):
            return False
        owner = self._definitions.owner(function)
        return any(
            (of is None or of is owner) and pattern.fullmatch(function.name.value) for pattern, of in self._asked_names
        )

    @cached_property
    def _handed(self) -> dict[int, cst.Arg]:
        """The functions and classes that what is called there is given: ``fire.Fire(Commands)``, ``run(evaluate)``."""
        found: dict[int, cst.Arg] = {}
        for argument in self._tree.nodes(cst.Arg):
            call = self._tree.parent(argument)
            if not isinstance(call, cst.Call) or not isinstance(argument.value, (cst.Name, cst.Attribute, cst.Call)):
                continue
            given = argument.value.func if isinstance(argument.value, cst.Call) else argument.value
            made = self._definitions.definition(given)
            if made is None or (isinstance(argument.value, cst.Call) and isinstance(made, cst.FunctionDef)):
                continue
            runs = self._is_run(argument) or (self._is_unknown(call) and self._is_off(call))
            runs = runs or self._is_run_by_other(argument, call)
            if runs:
                found.setdefault(id(made), argument)
        return found

    def _is_run_by_other(self, argument: cst.Arg, call: cst.Call) -> bool:
        """Whether a call is given, before a function, one that runs it there: ``submit(without_graph, self.run)``."""
        for other in call.args[: call.args.index(argument)]:
            runner = self._definitions.definition(other.value)
            if isinstance(runner, cst.FunctionDef):
                own = {parameter.name.value for parameter in runner.params.params}
                calls = [c for c in self._tree.below(runner.body, cst.Call) if identifier(c.func) in own]
                return bool(calls) and all(map(self._is_off, calls))
        return False

    def _is_handed(self, function: cst.FunctionDef) -> bool:
        """Whether a function, or the object whose method it is and that the file does not call, is handed on there."""
        if id(function) in self._handed or self._is_command(function):
            return True
        owner = self._definitions.owner(function)
        return owner is not None and id(owner) in self._handed and not self._evaluator.is_called(function)

    def _is_command(self, function: cst.FunctionDef) -> bool:
        """Whether a function is a command of an application that is run there: ``@app.command()``, ``app()``."""
        used = (decorator.decorator for decorator in function.decorators)
        named = (each.func if isinstance(each, cst.Call) else each for each in used)
        roots = {root_of(each) for each in named if isinstance(each, cst.Attribute)}
        return any(
            isinstance(call.func, cst.Name) and call.func.value in roots and self._is_off(call)
            for call in (self._tree.nodes(cst.Call) if roots else ())
        )

    def _is_unknown(self, call: cst.Call) -> bool:
        name = self._evaluator.names.qualified(call.func) or ""
        is_other = name in _ASKS or name.startswith(_ELSEWHERE)
        return self._definitions.definition(call.func) is None and not is_other

    def _is_run(self, argument: cst.Arg) -> bool:
        """Whether a function of the file calls a parameter there, and only there, for which it is given something."""
        call = self._tree.parent(argument)
        function = self._definitions.definition(call.func) if isinstance(call, cst.Call) else None
        if not isinstance(call, cst.Call) or not isinstance(function, cst.FunctionDef):
            return False
        taken = parameter_for(function, argument, call, self._definitions)
        calls = (c for c in self._tree.below(function.body, cst.Call) if isinstance(c.func, cst.Name))
        runs = [c for c in calls if taken is not None and identifier(c.func) == taken.name.value]
        return bool(runs) and all(map(self._is_off, runs))


def _pattern(name: cst.BaseExpression) -> str:
    """Return a regular expression for the names that an expression may be."""
    known = literal(name)
    if known is not None:
        return re.escape(str(known))
    if isinstance(name, cst.FormattedString):
        parts = (re.escape(p.value) if isinstance(p, cst.FormattedStringText) else ".*" for p in name.parts)
        return "".join(parts)
    if isinstance(name, cst.BinaryOperation) and isinstance(name.operator, cst.Add):
        return _pattern(name.left) + _pattern(name.right)
    return _ANY
