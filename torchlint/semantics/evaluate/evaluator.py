"""Evaluates expressions to abstract values; total, lazy, remembered, with a budget per file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.flow import Flow
from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Binding, BindingKind, Scopes
from torchlint.semantics.binding.usage import Usage
from torchlint.semantics.binding.vocabulary import Vocabulary
from torchlint.semantics.evaluate import (
    attributes,
    calls,
    containers,
    hints,
    host_modules,
    kept_batches,
    named_classes,
    named_makers,
    names,
    narrowing,
    operators,
)
from torchlint.semantics.evaluate.grad_mode import Gradients
from torchlint.semantics.evaluate.moving_calls import moving_calls
from torchlint.semantics.evaluate.told import Told
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import NONE, NUMBER, PENDING, STRING, UNKNOWN, Kind, Value, sequence
from torchlint.syntax.calls import element_at, is_none, literal
from torchlint.syntax.walk import Tree

_OPERATIONS: frozenset[type] = frozenset(
    (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation, cst.IfExp)
)
_CONTAINERS: frozenset[type] = frozenset(
    (cst.Subscript, cst.Tuple, cst.List, cst.Dict, cst.Set, *containers.COMPREHENSIONS)
)
Subject = TypeVar("Subject")

_HOLDING = (BindingKind.ASSIGNMENT, BindingKind.CONTEXT)
_BUDGET = 100_000
_MAX_DEPTH = 120
_MAX_ATTEMPTS = 2


class Evaluator:
    """What an expression can hold. A cycle, a differing join or an exhausted budget is UNKNOWN."""

    def __init__(
        self, tree: Tree, scopes: Scopes, qualified_names: Names, flow: Flow, definitions: Definitions
    ) -> None:
        self.tree = tree
        self.scopes = scopes
        self.names = qualified_names
        self.flow = flow
        self.definitions = definitions
        self.usage = Usage(tree, scopes, qualified_names, definitions)
        self.gradients = Gradients(tree, qualified_names, definitions, self)
        self.told = Told(self)
        self._known: dict[int, Value] = {}
        self._pending: dict[int, int] = {}
        self._attempts: dict[int, int] = {}
        self._cut_short: list[int] = []
        self._bound: dict[int, Value] = {}
        self._iterated: dict[int, Value] = {}
        self._lowest = _MAX_DEPTH
        self._returned: dict[int, Value] = {}
        self._callers: dict[int, list[cst.Call]] | None = None
        self._engine_steps: tuple[cst.FunctionDef, ...] | None = None
        self._kept_batches: dict[int, str] = {}
        self._steps = _BUDGET

    @cached_property
    def tensor_tests(self) -> dict[str, list[tuple[cst.Name, cst.CSTNode]]]:
        """By variable, where the file asks for a tensor, with the branch that is taken if it is one."""
        return narrowing.tensor_tests(self)

    @cached_property
    def tested_names(self) -> frozenset[str]:
        """The variables that the file asks for their type."""
        return narrowing.tested_names(self)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names that occur in the file."""
        return Vocabulary(self.tree)

    @cached_property
    def classes_by_ending(self) -> dict[str, cst.ClassDef | None]:
        """The classes of the file by each ending of their names, in words; None where several end so."""
        return named_classes.by_ending(self)

    @cached_property
    def makers_by_start(self) -> dict[str, list[cst.FunctionDef]]:
        """The functions of the file that are named for making something, by each start of its name, in words."""
        return named_makers.by_start(self)

    @cached_property
    def moving_calls(self) -> list[cst.Call]:
        """The calls that may bring something to a device."""
        return moving_calls(self.tree)

    @cached_property
    def named_moves(self) -> dict[str, list[cst.Call]]:
        """By variable, where the file moves what is made of it to a place."""
        return host_modules.named_moves(self)

    def value(self, expression: cst.CSTNode) -> Value:
        """Return the abstract value of an expression."""
        key = id(expression)
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._pending:
            self._lowest = min(self._lowest, self._pending[key])
            return PENDING
        depth = len(self._pending)
        if self._callers is None:
            self._link()
        if self._steps <= 0 or depth >= _MAX_DEPTH:
            return UNKNOWN
        self._steps -= 1
        outer, self._lowest = self._lowest, depth
        self._pending[key] = depth
        found = self._dispatch(expression)
        del self._pending[key]
        if depth == 0 and found.kind is Kind.PENDING:
            found = UNKNOWN
        self._remember(key, found, self._lowest >= depth)
        if depth == 0:
            self._forget_cut_short()
        self._lowest = min(outer, self._lowest) if self._lowest < depth else outer
        return found

    def _remember(self, key: int, found: Value, independent: bool) -> None:
        """Keep a result, unless it was cut short by a cycle through an expression that is still being evaluated."""
        attempts = self._attempts.get(key, 0) + 1
        if independent or found.known or attempts >= _MAX_ATTEMPTS:
            self._known[key] = UNKNOWN if found.kind is Kind.PENDING else found
            if not independent:
                self._cut_short.append(key)
        else:
            self._attempts[key] = attempts

    def _forget_cut_short(self) -> None:
        """Forget what a cycle cut short: asked for itself it may be something else, whatever was asked before."""
        for key in self._cut_short:
            self._known.pop(key, None)
        self._cut_short.clear()
        self._attempts.clear()

    def _dispatch(self, expression: cst.CSTNode) -> Value:
        # By the type itself, the most frequent first: this is asked for each expression, and `isinstance` is slow.
        if type(expression) is cst.Name:
            return NONE if is_none(expression) else names.evaluate(expression, self)
        if type(expression) is cst.Call:
            return calls.evaluate(expression, self)
        if type(expression) is cst.Attribute:
            return attributes.evaluate(expression, self)
        if type(expression) in _OPERATIONS:
            return operators.evaluate(expression, self)
        if type(expression) in _CONTAINERS:
            return containers.evaluate(expression, self)
        if isinstance(expression, cst.BaseNumber):
            return Value(Kind.NUMBER, literal=literal(expression))
        if isinstance(expression, cst.BaseString):
            return Value(Kind.STRING, literal=literal(expression)) if literal(expression) is not None else STRING
        if isinstance(expression, cst.NamedExpr):
            return self.value(expression.value)
        if isinstance(expression, (cst.Await, cst.StarredElement)):
            return UNKNOWN
        return operators.evaluate(expression, self)

    def returned(self, function: cst.FunctionDef) -> Value:
        """Return what calling a function of this file gives, without looking at the arguments."""
        key = id(function)
        if key not in self._returned:
            self._returned[key] = UNKNOWN  # recursion gives nothing away
            self._returned[key] = calls.returned(function, self)
        return self._returned[key]

    def bound(self, binding: Binding) -> Value:
        """Return what a binding binds its name to."""
        return self._kept(self._bound, binding, names.of_definition)

    def iterated(self, loop: cst.For | cst.CompFor) -> Value:
        """Return what one step of a loop binds to its target."""
        return self._kept(self._iterated, loop, _iterated)

    def _kept(self, kept: dict[int, Value], subject: Subject, work_out: Callable[[Subject, Evaluator], Value]) -> Value:
        """Return what is worked out of a subject, only once unless a cycle cuts it short."""
        known = kept.get(id(subject))
        if known is not None:
            return known
        depth = len(self._pending)
        outer, self._lowest = self._lowest, depth
        found = work_out(subject, self)
        is_independent = self._lowest >= depth
        self._lowest = outer if is_independent else min(outer, self._lowest)
        if is_independent and not self._cut_short and found.kind is not Kind.PENDING:
            kept[id(subject)] = found
        return found

    def held_by(self, variable: cst.BaseExpression | None) -> list[cst.BaseExpression | None]:
        """Return what a variable, or an attribute of the object, may hold by what binds it, None where that is open."""
        if isinstance(variable, cst.Name):
            bindings = self.flow.definitions(variable)
            return [binding.part if binding.kind in _HOLDING else None for binding in bindings]
        if not isinstance(variable, cst.Attribute) or not isinstance(variable.value, cst.Name):
            return []
        owner = self.definitions.receiver(variable.value)
        given = self.definitions.attribute(owner, variable.attr.value) if owner is not None else ()
        return [element_at(each.value, each.path) for each in given]

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls in this file that call a function, by its name, as a method, or as a class."""
        if self._callers is None:
            self._link()
        return (self._callers or {}).get(id(function), [])

    def is_called(self, function: cst.FunctionDef) -> bool:
        """Return whether the file calls a function, other than from itself."""
        return any(not self.tree.within(call, function) for call in self.callers(function))

    def _link(self) -> None:
        """Work out who calls whom, before the first value: answers would otherwise depend on what is asked first."""
        self._callers = {}
        named = calls.callable_names(self)
        self._callers = calls.named_callers(self, named)
        self._callers = calls.callers(self, named)
        self._forget()

    def is_engine_step(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is what an engine of Ignite runs for each batch."""
        if self._engine_steps is None:
            self._engine_steps = hints.engine_steps(self)
        return any(step is function for step in self._engine_steps)

    def kept_batch(self, function: cst.FunctionDef) -> str:
        """Return the parameter of a method that is a batch, by what the method keeps of it for a step; "" if none."""
        if id(function) not in self._kept_batches:
            self._kept_batches[id(function)] = kept_batches.kept_batch(function, self)
        return self._kept_batches[id(function)]

    def release(self) -> None:
        """Let go of what refers back to the evaluator; afterwards it answers nothing."""
        del self.gradients, self.told

    def _forget(self) -> None:
        """Drop what was evaluated while the call graph was incomplete."""
        self._known.clear()
        self._returned.clear()
        self._bound.clear()
        self._iterated.clear()
        self._attempts.clear()
        self._kept_batches.clear()
        self.gradients.forget()


def _says_nothing(value: Value) -> bool:
    """Return whether nothing is known of a value, or of any part of it: ``zip(a, b)`` of anything."""
    return all(map(_says_nothing, value.elements)) if value.elements else not value.known


def _iterated(loop: cst.For | cst.CompFor, evaluator: Evaluator) -> Value:
    found = evaluator.value(loop.iter).iterated()
    is_counted = _qualified_call(loop.iter, evaluator) == "builtins.enumerate" and len(found.elements or ()) == 2
    counted = (found.elements or (found,))[-1] if is_counted else found
    is_open = _says_nothing(counted)
    if found.known and found.evidence > Evidence.NAMED and not is_open:
        return found
    used = hints.iterated(loop, evaluator)  # may bear out what a name promises
    if is_open and used.known:
        return sequence(NUMBER, used) if is_counted else used
    if not found.known:
        return UNKNOWN
    if used.known and found.kind is Kind.MODULE and isinstance(loop.target, cst.Tuple):
        return used  # `for x, y in generator`: a name of more than models
    return found.borne_out() if used.known else found


def _qualified_call(expression: cst.BaseExpression, evaluator: Evaluator) -> str | None:
    return evaluator.names.qualified(expression.func) if isinstance(expression, cst.Call) else None
