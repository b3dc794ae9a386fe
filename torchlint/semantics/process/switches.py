"""Global switches that a file sets: attributes of imported modules, environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.process.testing import compares_results
from torchlint.semantics.tables.names import canonical
from torchlint.semantics.tables.torch_api import FRAMEWORK_SWITCHES
from torchlint.syntax.calls import bind, code, identifier, literal

ENVIRONMENT = "os.environ"
_SEEDING = frozenset(
    (
        "torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.seed torch.random.manual_seed "
        "random.seed numpy.random.seed "
        "lightning.pytorch.seed_everything transformers.set_seed accelerate.utils.set_seed torch.Generator"
    ).split()
)
_SETTING = frozenset(("torch.use_deterministic_algorithms", "torch.set_deterministic"))
_SEEDING_NAME = re.compile(r"seed|determinis|reproduc|_rng|random_state|repeatab", re.IGNORECASE)


class Setting(NamedTuple):
    """One switch that a statement sets."""

    name: str
    """Qualified name of the attribute, or ``os.environ[NAME]``."""

    value: cst.BaseExpression
    statement: cst.CSTNode
    alone: bool
    """Whether the statement does nothing else."""

    keyword: str = ""
    """The argument of a framework's class that sets it, "" where it is set by itself."""

    place: cst.BaseExpression | None = None
    """What names it: the target of an assignment, or the string that a call is given."""


class Switches:
    """Finds settings, and the functions whose job it is to make runs repeatable."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._names = evaluator.names

    @cached_property
    def are_for_comparison(self) -> bool:
        """Whether the file asserts that two ways to compute something give the same."""
        return compares_results(self._tree, self._names)

    def settings(self, node: cst.CSTNode) -> list[Setting]:
        """Return what an assignment, or a call that stands for one, sets."""
        if isinstance(node, cst.Assign):
            return list(self._assigned(node))
        if isinstance(node, cst.Call):
            return list(self._called(node))
        return []

    def _assigned(self, statement: cst.Assign) -> Iterator[Setting]:
        for target in statement.targets:
            if isinstance(target.target, cst.Name):
                continue
            pairs = list(_pairs(target.target, statement.value))
            for place, value in pairs:
                name = self._name(place)
                if name is not None:
                    alone = len(pairs) == len(statement.targets) == 1
                    yield Setting(name, value, statement, alone, place=_named_by(place))

    def _name(self, target: cst.BaseExpression) -> str | None:
        if isinstance(target, cst.Attribute):
            owner = self._names.qualified(target.value)
            return None if owner is None else canonical(f"{owner}.{target.attr.value}")
        if isinstance(target, cst.Subscript) and len(target.slice) == 1:
            index = target.slice[0].slice
            key = literal(index.value) if isinstance(index, cst.Index) else None
            return self._variable(target.value, key)
        return None

    def _variable(self, mapping: cst.BaseExpression, key: object) -> str | None:
        if isinstance(key, str) and self._names.qualified(mapping) == ENVIRONMENT:
            return f"{ENVIRONMENT}[{key}]"
        return None

    def _called(self, call: cst.Call) -> Iterator[Setting]:
        name = self._names.qualified(call.func)
        if name in FRAMEWORK_SWITCHES:
            given = bind(call.args)
            found = ((keyword, switch, given.get(keyword)) for keyword, switch in FRAMEWORK_SWITCHES[name].items())
            for keyword, switch, value in found:
                if value is not None:
                    yield Setting(switch, value, call, False, keyword)
            return
        alone = isinstance(self._tree.parent(call), cst.Expr)
        values = [argument.value for argument in call.args if not argument.star and argument.keyword is None]
        if name == "builtins.setattr" and len(values) == 3:
            owner, attribute = self._names.qualified(values[0]), literal(values[1])
            if owner is not None and isinstance(attribute, str):
                yield Setting(canonical(f"{owner}.{attribute}"), values[2], call, alone, place=values[1])
        elif name in (f"{ENVIRONMENT}.setdefault", "os.putenv", f"{ENVIRONMENT}.__setitem__") and len(values) == 2:
            key = literal(values[0])
            if isinstance(key, str):
                yield Setting(f"{ENVIRONMENT}[{key}]", values[1], call, alone, place=values[0])
        elif name == f"{ENVIRONMENT}.update":
            variables = dict(bind(call.args).named)
            for value in values:
                if isinstance(value, cst.Dict):
                    variables |= _items(value)
            for key, value in variables.items():
                yield Setting(f"{ENVIRONMENT}[{key}]", value, call, alone and len(variables) == 1)

    def shown(self, setting: Setting) -> str:
        """Return the code that sets a switch, of a framework's class only the argument."""
        if setting.keyword and isinstance(setting.statement, cst.Call):
            return f"{code(setting.statement.func)}({setting.keyword}={code(setting.value)})"
        return code(setting.statement).strip()

    def read(self, setting: Setting) -> bool:
        """Return whether the file reads the attribute or variable that it sets, or asks whether it is there."""
        nodes: list[cst.Assign | cst.Call] = [*self._tree.nodes(cst.Assign), *self._tree.nodes(cst.Call)]
        setting_it = {id(other.place) for node in nodes for other in self.settings(node)}
        last = setting.name.rpartition(".")[2].rpartition("[")[2].rstrip("]")
        for attribute in self._tree.nodes(cst.Attribute):
            if attribute.attr.value == last and id(attribute) not in setting_it:
                return True
        # `environ["A"]`, `environ.get("A")`, `"A" in environ`, `getattr(module, "a")`
        return any(literal(t) == last and id(t) not in setting_it for t in self._tree.nodes(cst.SimpleString))

    def restored(self, setting: Setting) -> bool:
        """Return whether the same function (or the top level) sets the switch to something else further on."""
        if setting.keyword:
            return False  # each object that is made has its own
        function = self._evaluator.definitions.enclosing_function(setting.statement)
        place = self._tree.order(setting.statement)
        later: list[cst.Assign | cst.Call] = [*self._tree.nodes(cst.Assign), *self._tree.nodes(cst.Call)]
        return any(
            other.name == setting.name and literal(other.value) != literal(setting.value)
            for node in later
            if self._tree.order(node) > place and self._evaluator.definitions.enclosing_function(node) is function
            for other in self.settings(node)
        )

    def makes_repeatable(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to a function or class that makes runs repeatable, and does little else."""
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None:
            return False
        owner = self._evaluator.definitions.owner(function)
        if any(_SEEDING_NAME.search(d.name.value) for d in (function, owner) if d is not None):
            return True
        lines = [s for s in self._tree.descendants(function.body) if isinstance(s, (cst.Expr, cst.Assign))]
        calls = [line.value for line in lines if isinstance(line.value, cst.Call)]
        seeds = [c for c in calls if self._names.qualified(c.func) in _SEEDING]
        return bool(seeds) and 2 * sum(self._is_setup(line) for line in lines) > len(lines)

    def is_setter(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to a function that only sets switches and that the file never calls.

        Whoever calls it from elsewhere asks for what it does.
        """
        function = self._evaluator.definitions.enclosing_function(node)
        if function is None or self._evaluator.callers(function):
            return False
        body = list(self._tree.descendants(function.body))
        if any(isinstance(s, (cst.For, cst.While, cst.With, cst.AugAssign)) or _gives(s) for s in body):
            return False
        lines = [s for s in body if isinstance(s, (cst.Expr, cst.Assign))]
        return all(self._is_setup(line) or self._only_says(line.value) for line in lines)

    def _only_says(self, value: cst.BaseExpression) -> bool:
        if not isinstance(value, cst.Call):
            return isinstance(value, cst.BaseString)
        return identifier(value.func) in ("print", "debug", "info", "warning", "warn")

    def _is_setup(self, line: cst.Expr | cst.Assign) -> bool:
        value = line.value
        if isinstance(value, cst.Call) and self._names.qualified(value.func) in _SEEDING | _SETTING:
            return True
        return any(not setting.keyword for setting in (*self.settings(line), *self.settings(value)))


def _named_by(target: cst.BaseExpression) -> cst.BaseExpression:
    """What names the switch in a target: the key of an entry, else all of it."""
    index = target.slice[0].slice if isinstance(target, cst.Subscript) else None
    return index.value if isinstance(index, cst.Index) else target


def _gives(statement: cst.CSTNode) -> bool:
    """Whether a statement returns something that is computed."""
    return isinstance(statement, cst.Return) and isinstance(statement.value, (cst.Call, cst.BinaryOperation))


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if isinstance(target, (cst.Tuple, cst.List)):
        if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements):
            for inner, given in zip(target.elements, value.elements, strict=True):
                yield from _pairs(inner.value, given.value)
    else:
        yield target, value


def _items(mapping: cst.Dict) -> dict[str, cst.BaseExpression]:
    elements = (element for element in mapping.elements if isinstance(element, cst.DictElement))
    keyed = ((literal(element.key), element.value) for element in elements)
    return {key: value for key, value in keyed if isinstance(key, str)}
