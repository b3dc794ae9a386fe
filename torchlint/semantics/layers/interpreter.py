"""Runs the functions of a file on abstract layers, path by path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.layers import expressions, loops
from torchlint.semantics.layers.constructors import Constructors
from torchlint.semantics.layers.state import SELF, State
from torchlint.semantics.layers.values import (
    Chain,
    Items,
    Nothing,
    Output,
    Tail,
    Value,
    alternatives,
    join,
    opaque,
    tails,
)
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal

_STEPS = 150_000
_PATHS = 24
_SEQUENTIAL = "torch.nn.Sequential"
# What takes the place of `forward` once the normalisation is folded into a new convolution.
_FUSED = re.compile(r"^_?(forward_?fused?|fused?_?forward)$")


class ExhaustedError(Exception):
    """The file is too big to be run."""


class Interpreter:
    """Functions are run once each, on parameters of which nothing is known; what they return is remembered."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.tree = evaluator.tree
        self.definitions = evaluator.definitions
        self.constructors = Constructors(evaluator)
        self.choices: dict[cst.IfExp, bool] = {}
        self.roots: dict[cst.Call, Tail] = {}
        self.passed_on: set[Tail] = set()
        """Layers that are given to functions which return nothing, such as initialisers."""

        self.fed: dict[cst.CSTNode, set[cst.CSTNode]] = {}
        """What goes into a layer and is no output of another one: the argument of the call."""

        self.outputs: dict[cst.Call, frozenset[cst.Call]] = {}
        """The layers whose output the call of a module gives."""

        self._evaluator = evaluator
        self._forks: dict[int, list[cst.IfExp]] = {}
        for fork in self.tree.nodes(cst.IfExp):
            self._forks.setdefault(id(evaluator.flow.statement(fork)), []).append(fork)
        self._returned: dict[cst.CSTNode, Value] = {}
        self._pending: set[cst.CSTNode] = set()
        self._attributes: dict[tuple[cst.ClassDef, str], dict[Value, cst.CSTNode]] = {}
        self._globals: dict[str, dict[Value, cst.CSTNode]] = {}
        self._returns: list[tuple[Value, cst.CSTNode]] = []
        self._ends: list[State] = []
        self._exits: list[State] = []
        self._steps = _STEPS

    def run(self) -> None:
        """Run the module and every function of the file."""
        self._run(self.tree.module)
        for function in self.tree.nodes(cst.FunctionDef):
            name = function.name.value
            if not _FUSED.match(name) or name in self._evaluator.vocabulary.attributes:
                self.returned(function)

    def step(self) -> None:
        """Count the work."""
        self._steps -= 1
        if self._steps < 0:
            raise ExhaustedError

    # What functions and classes give

    def returned(self, function: cst.FunctionDef) -> Value:
        """Return what calling a function of the file gives."""
        self._run(function)
        return self._returned.get(function)

    def _run(self, root: cst.FunctionDef | cst.Module) -> None:
        if root in self._returned or root in self._pending:
            return
        self._pending.add(root)
        saved = self._returns, self._ends, self._exits, self.choices
        self._returns, self._ends, self._exits, self.choices = [], [], [], {}
        start = [State()]
        self._ends += self._block(root.body, start) if isinstance(root, cst.Module) else self._suite(root.body, start)
        self._export(root)
        self._returned[root] = join(self._returns) if self._returns else None
        self._returns, self._ends, self._exits, self.choices = saved
        self._pending.discard(root)

    def _export(self, root: cst.FunctionDef | cst.Module) -> None:
        owner = self.definitions.owner(root) if isinstance(root, cst.FunctionDef) else None
        for state in self._ends:
            for name, value in state.variables.items():
                if isinstance(root, cst.Module):
                    self._globals.setdefault(name, {})[value] = root
                elif owner is not None and name.startswith("."):
                    self._attributes.setdefault((owner, name[1:]), {})[value] = root
                elif owner is not None and name == SELF and root.name.value == "__init__":
                    self._attributes.setdefault((owner, SELF), {})[value] = root

    def instance(self, class_def: cst.ClassDef, call: cst.Call) -> Value:
        """Return the module that creating an instance of a class gives."""
        if self.definitions.class_kind(class_def) is not Kind.MODULE:
            return None
        if self.is_sequence(class_def):
            initialiser = self.definitions.method(class_def, "__init__")
            if initialiser is not None:
                self._run(initialiser)
                owner = self.definitions.owner(initialiser) or class_def
                found = join(self._attributes.get((owner, SELF), {}).items())
                return found.at(call) if isinstance(found, Chain) else opaque(call)
        forward = self.definitions.method(class_def, "forward")
        output = self.returned(forward) if forward is not None else None
        found_tails = output.tails if isinstance(output, Output) else frozenset()
        return Chain(frozenset((call,)), frozenset(tail.at(call) for tail in found_tails))

    def is_sequence(self, class_def: cst.ClassDef) -> bool:
        """Return whether a class is a ``Sequential`` that runs its modules in order."""
        if _SEQUENTIAL not in self.definitions.ancestry(class_def):
            return False
        forward = self.definitions.method(class_def, "forward")
        if forward is None:
            return True
        return any(
            isinstance(node, cst.Attribute)
            and node.attr.value == "forward"
            and isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Name)
            and node.value.func.value == "super"
            for node in self.tree.descendants(forward)
        )

    def method(self, class_def: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """Return a method of a class of the file."""
        return self.definitions.method(class_def, name)

    def receiver(self, expression: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class whose instance an expression is, if it is ``self``."""
        return self.definitions.receiver(expression) if isinstance(expression, cst.Name) else None

    def qualified(self, expression: cst.CSTNode) -> str | None:
        """Return the qualified name of an imported object."""
        return self._evaluator.names.qualified(expression)

    def root(self, call: cst.Call) -> Tail:
        """Return the tail of the layer that a call creates."""
        return self.roots.setdefault(call, Tail(call, call))

    def handed(self, value: Value) -> None:
        """Note layers that a function gets which returns nothing."""
        self.passed_on |= tails(value)

    # Variables

    def variable(self, name: cst.Name, state: State) -> Value:
        """Return what a name holds; module-level names can hold all that is bound there."""
        if name.value in state.variables:
            return state.variables[name.value]
        bindings = self._evaluator.scopes.bindings(name)
        if not bindings or bindings[0].scope.parent is not None or self.tree.module in self._pending:
            return None
        return join(self._globals.get(name.value, {}).items()) if name.value in self._globals else None

    def attribute(self, class_def: cst.ClassDef, name: str, state: State) -> Value:
        """Return what an attribute of ``self`` holds: on this path, else all that the class assigns."""
        key = "." + name
        if key in state.variables:
            return state.variables[key]
        for binding in self.definitions.attribute(class_def, name):
            if binding.method is not None:
                self._run(binding.method)
        initialiser = self.definitions.method(class_def, "__init__")
        if initialiser is not None:
            self._run(initialiser)
        found = self._of_class(class_def, name)
        return join(found.items()) if found else None

    def _of_class(self, class_def: cst.ClassDef, name: str) -> dict[Value, cst.CSTNode]:
        found = dict(self._attributes.get((class_def, name), {}))
        for base in self.definitions.bases(class_def):
            found.update(self._of_class(base, name))
        return found

    def store(self, target: cst.BaseExpression, value: Value, state: State) -> None:
        """Bind a target, or give up on the value where the target cannot be followed."""
        if isinstance(target, cst.Name):
            state.set(target.value, value)
        elif isinstance(target, cst.Attribute) and self.receiver(target.value) is not None:
            state.set("." + target.attr.value, value)
            if isinstance(value, Output):  # whoever has the module can read it there
                state.release(value, target)
        elif isinstance(target, cst.Subscript):
            self._store_item(target, value, state)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, value, state)
        else:
            state.release(value, target)

    def _store_item(self, target: cst.Subscript, value: Value, state: State) -> None:
        index = target.slice[0].slice
        owner = expressions.evaluate(target.value, state, self)
        key = literal(index.value) if isinstance(index, cst.Index) else None
        if isinstance(owner, Items) and owner.keys is not None:
            name = key if isinstance(key, str) else None
            self.store(target.value, expressions.appended(owner, value, target, name), state)
        else:
            state.release(value, target)
            state.release(owner, target)

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, state: State) -> None:
        whole = isinstance(value, Items) and len(value.items) == len(target.elements)
        if not whole:
            state.release(value, target)
        for index, element in enumerate(target.elements):
            item = value.items[index] if whole and isinstance(value, Items) else None
            self.store(element.value, item, state)

    # Statements

    def _block(self, body: Sequence[cst.CSTNode], states: list[State]) -> list[State]:
        for statement in body:
            if not states:
                break
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    states = [after for state in states for after in self._small(small, state)]
            else:
                states = [after for state in states for after in self._compound(statement, state)]
            states = self._merged(states)
        return states

    def _suite(self, suite: cst.BaseSuite, states: list[State]) -> list[State]:
        if isinstance(suite, cst.SimpleStatementSuite):
            return [after for state in states for after in self._line(suite.body, state)]
        return self._block(suite.body, states)

    def _line(self, body: Sequence[cst.BaseSmallStatement], state: State) -> list[State]:
        states = [state]
        for small in body:
            states = [after for one in states for after in self._small(small, one)]
        return states

    def _merged(self, states: list[State]) -> list[State]:
        if len(states) < 2:
            return states
        different = list({state.key(): state for state in states}.values())
        for dropped in different[_PATHS:]:
            for value in dropped.variables.values():
                if isinstance(value, Output):
                    for tail in value.tails:
                        tail.shared = True
        return different[:_PATHS]

    def _small(self, statement: cst.BaseSmallStatement, state: State) -> list[State]:
        forks = self._forks.get(id(statement), [])
        if not 0 < len(forks) <= 2:
            return self._simple(statement, state)
        found: list[State] = []
        for number in range(2 ** len(forks)):
            self.choices.update({fork: bool(number >> place & 1) for place, fork in enumerate(forks)})
            found += self._simple(statement, state.copy())
        for fork in forks:
            del self.choices[fork]
        return found

    def _simple(self, statement: cst.BaseSmallStatement, state: State) -> list[State]:
        if isinstance(statement, cst.Assign):
            value = expressions.evaluate(statement.value, state, self)
            for target in statement.targets:
                self._assign(target.target, value, statement.value, state)
        elif isinstance(statement, cst.AnnAssign) and statement.value is not None:
            value = expressions.evaluate(statement.value, state, self)
            self._assign(statement.target, value, statement.value, state)
        elif isinstance(statement, cst.AugAssign):
            self._augmented(statement, state)
        elif isinstance(statement, cst.Return):
            self._return(statement, state)
            return []
        elif isinstance(statement, (cst.Break, cst.Continue)):
            self._exits.append(state)
            return []
        elif isinstance(statement, cst.Raise):
            return []
        elif isinstance(statement, cst.Expr):
            expressions.evaluate(statement.value, state, self)
        elif isinstance(statement, cst.Assert):
            expressions.look(statement.test, state, self)
        return [state]

    def _assign(self, target: cst.BaseExpression, value: Value, node: cst.BaseExpression, state: State) -> None:
        """Bind a target; an attribute remembers that it can be something unknown."""
        unknown = value is None and isinstance(target, cst.Attribute) and isinstance(node, cst.Call)
        self.store(target, opaque(node) if unknown else value, state)

    def _augmented(self, statement: cst.AugAssign, state: State) -> None:
        before = expressions.evaluate(statement.target, state, self)
        value = expressions.evaluate(statement.value, state, self)
        if isinstance(statement.operator, cst.AddAssign) and alternatives(before) and alternatives(value):
            first = before if isinstance(before, Items) else Items((before,), (statement.target,))
            self.store(statement.target, expressions.extended(first, value, statement.value), state)
            return
        state.release(before, statement)
        state.release(value, statement)
        self.store(statement.target, None, state)

    def _return(self, statement: cst.Return, state: State) -> None:
        value: Value = Nothing()
        if statement.value is not None:
            value = expressions.evaluate(statement.value, state, self)
            for output in value.items if isinstance(value, Items) else (value,):
                if isinstance(output, Output):
                    for tail in output.tails:
                        state.hold(tail, statement)
                        tail.returned.add(statement)
                elif isinstance(output, Chain):
                    for tail in output.lasts:
                        tail.returned.add(statement)
            self._returns.append((value, statement.value))
        self._ends.append(state)

    def _compound(self, statement: cst.CSTNode, state: State) -> list[State]:
        if isinstance(statement, cst.If):
            return self._if(statement, state)
        if isinstance(statement, (cst.For, cst.While)):
            return self._loop(statement, state)
        if isinstance(statement, cst.With):
            for item in statement.items:
                state.release(expressions.evaluate(item.item, state, self), item)
            return self._suite(statement.body, [state])
        if isinstance(statement, (cst.Try, cst.TryStar)):
            return self._try(statement, state)
        if isinstance(statement, cst.Match):
            expressions.look(statement.subject, state, self)
            return [a for case in statement.cases for a in self._suite(case.body, [state.copy()])] + [state]
        if isinstance(statement, cst.FunctionDef):
            defaults = (parameter.default for parameter in parameters(statement))
            for node in (*statement.decorators, *(default for default in defaults if default is not None)):
                state.release(expressions.evaluate(node, state, self), node)
        elif isinstance(statement, cst.ClassDef):
            self._suite(statement.body, [state.copy()])
        return [state]

    def _if(self, statement: cst.If, state: State) -> list[State]:
        expressions.look(statement.test, state, self)
        other = state.copy()
        after = self._suite(statement.body, [state])
        if isinstance(statement.orelse, cst.If):
            return after + self._if(statement.orelse, other)
        if isinstance(statement.orelse, cst.Else):
            return after + self._suite(statement.orelse.body, [other])
        return [*after, other]

    def _try(self, statement: cst.Try | cst.TryStar, state: State) -> list[State]:
        failed = state.copy()
        after = self._suite(statement.body, [state])
        for handler in statement.handlers:
            after += self._suite(handler.body, [failed.copy()])
        if statement.orelse is not None:
            after = self._suite(statement.orelse.body, after)
        return self._suite(statement.finalbody.body, after) if statement.finalbody is not None else after

    def _loop(self, loop: cst.For | cst.While, state: State) -> list[State]:
        saved, self._exits = self._exits, []
        passes: Iterable[Value] = (None, None)
        if isinstance(loop, cst.For):
            passes = self.iterated(loop.iter, state) or passes
        else:
            expressions.look(loop.test, state, self)
        states = [state]
        for item in passes:
            for one in states:
                if isinstance(loop, cst.For):
                    self.store(loop.target, item, one)
            states = self._merged(self._suite(loop.body, states) + self._exits)
            self._exits = []
        self._exits = saved
        return states

    def iterated(self, iterable: cst.BaseExpression, state: State) -> list[Value]:
        """Return what a loop binds to its target, pass by pass; empty where that cannot be seen."""
        return loops.passes(iterable, state, self)
