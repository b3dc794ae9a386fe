"""Routines whose results a caller backpropagates: ``loss += evaluate(net, queries)``, ``loss.backward()``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.autograd.backward import Backward
from torchlint.semantics.autograd.handed import HandedLosses
from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.binding.scopes import FUNCTIONS, targets
from torchlint.semantics.evaluate import lambdas
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.drawn_tokens import is_without_graph
from torchlint.semantics.evaluation.handed_functions import is_put_away
from torchlint.semantics.tables.container_methods import PUTS_INTO, STORES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_DETACHES = ("detach", "data", "item", "tolist", "shape")
_NUMBERS = frozenset(("builtins.int", "builtins.float", "builtins.bool", "numpy.argmax"))
# What runs where nothing is called: `scores @ batch`, `scores[batch]`.
_OPERATOR = re.compile(r"^__(?!init__|call__|enter__|exit__|len__|iter__|next__|new__)\w+__$")
_RUN_LATER = ("submit", "map", "starmap", "apply_async")  # of pools of threads
_MAX_DEPTH = 3
"""Through how many functions that return it a result is followed."""


class FedPasses:
    """Follows results to the backward passes of callers."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._backward = backward
        self._handed = HandedLosses(evaluator, backward)

    def by(self, function: cst.FunctionDef | None, depth: int = 0, *, collected: bool = False) -> bool:
        """Return whether a caller backpropagates what a function returns, or another one what that returns.

        ``collected``: only what goes into a sum or a list there, or is taken apart by a loop.
        """
        if function is None or depth > _MAX_DEPTH:
            return False
        if self._is_wrapped_in_pass(function) or self._is_operator(function) or self._is_read_as_attribute(function):
            return True
        if self._gives_numbers(function):
            return False
        handed = (run for argument in self._handed_over(function) for run in self._run_by_taker(argument))
        calls = (*self._evaluator.callers(function), *self._by_other_names(function), *handed)
        return any(self._by_call(call, depth, collected) for call in calls)

    def _by_other_names(self, function: cst.FunctionDef) -> Iterator[cst.Call]:
        """The calls of a function by a name that its class, or the file, gives it besides: ``features = embed``."""
        for name in self._tree.named(function.name.value):
            statement = self._tree.parent(name)
            if not isinstance(statement, cst.Assign) or self._evaluator.definitions.definition(name) is not function:
                continue
            for target in statement.targets:
                yield from self._tree.calls_named(identifier(target.target))

    @remembered
    def may_run_unseen(self, function: cst.FunctionDef) -> bool:
        """Return whether others may run a function, in a file that differentiates, than call it by its name."""
        if not self._backward.passes():
            return False
        if is_put_away(function, self._evaluator) or any(True for _ in self._by_other_names(function)):
            return True
        takers = (self._tree.parent(argument) for argument in self._handed_over(function))
        return any(isinstance(taker, cst.Call) and self._may_run(taker) for taker in takers)

    def _handed_over(self, function: cst.FunctionDef) -> Iterator[cst.Arg]:
        """The arguments by which a function is handed on: ``fit(objective)``, ``fit(partial(objective, target))``."""
        for name in self._tree.named(function.name.value):
            given = self._tree.parent(name)
            maker = self._tree.parent(given) if isinstance(given, cst.Arg) else None
            if isinstance(maker, cst.Call) and self._evaluator.names.qualified(maker.func) == "functools.partial":
                given = self._tree.parent(maker) if maker.args[0] is given else None
            if isinstance(given, cst.Arg) and self._evaluator.definitions.definition(name) is function:
                yield given

    def _is_wrapped_in_pass(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator of the file differentiates what a function gives: ``@optimised``."""
        named = (getattr(each.decorator, "func", each.decorator) for each in function.decorators)
        made = map(self._evaluator.definitions.definition, named)
        return any(isinstance(each, cst.FunctionDef) and bool(self._backward.passes(each)) for each in made)

    def _is_read_as_attribute(self, function: cst.FunctionDef) -> bool:
        """Whether a backward pass starts from what a property gives: ``(-self.spread).backward()``."""
        names = [self._evaluator.names.qualified(each.decorator) for each in function.decorators]
        if "builtins.property" not in names and "functools.cached_property" not in names:
            return False
        reads = self._tree.attributes_named(function.name.value)
        return any(self._backward.reaches(read, self._tree.module) for read in reads[:1])

    def _is_operator(self, function: cst.FunctionDef) -> bool:
        """Whether a method runs where nothing is called, in a file that differentiates; loaders ask data sets."""
        owner = self._evaluator.definitions.owner(function)
        if owner is None or _OPERATOR.match(function.name.value) is None or not self._backward.passes():
            return False
        return self._evaluator.definitions.class_kind(owner) is not Kind.DATASET

    def _gives_numbers(self, function: cst.FunctionDef) -> bool:
        """Whether all that a function returns has been read from tensors: a replay memory is given it so."""
        results = self._evaluator.definitions.results(function)
        return bool(results) and not self._evaluator.definitions.yielded(function) and all(map(self._is_read, results))

    def _is_read(self, value: cst.BaseExpression) -> bool:
        name = self._evaluator.names.qualified(value.func) if isinstance(value, cst.Call) else None
        if name in _NUMBERS or method_call(value, "item", "tolist", "numpy") is not None:
            return True
        parts = value.elements if isinstance(value, cst.Tuple) else ()
        return bool(parts) and all(is_without_graph(self._evaluator.value(part.value)) for part in parts)

    def by_call(self, call: cst.Call) -> bool:
        """Return whether what a call gives is backpropagated where it stands, or by those that are given it."""
        return self._by_call(call, 0, collected=False)

    def hands_out(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Return whether a function returns what a call in it gives, or what is computed of that."""
        return self._is_returned(call, list(self._held(call, collected=False)), function)

    def _by_call(self, call: cst.Call, depth: int, collected: bool) -> bool:
        frame = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        if any(self._by_call(run, depth + 1, collected) for run in self._runs(call, depth)):
            return True
        if any(one is call or self._tree.within(call, one) for one in self._backward.passes(frame)):
            return True
        if any(self._backward.differentiates_given(taker, call) for taker in self._takers(call)):
            return True
        if frame is self._tree.module and self._backward.is_over_at(call):
            return False
        held = [variable for variable in self._held(call, collected) if not self._is_only_read_detached(variable)]
        if any(self._backward.reaches(variable, frame) for variable in held):
            return True
        if self.by_attribute(held, frame):
            return True
        returned = isinstance(frame, cst.FunctionDef) and self._is_returned(call, held, frame)
        return returned and isinstance(frame, cst.FunctionDef) and self.by(frame, depth + 1, collected=collected)

    def _runs(self, call: cst.Call, depth: int) -> Iterator[cst.Call]:
        """The calls that run the lambda around a call: ``residual = lambda: predict(net, x) - y``, ``residual()``."""
        made = self._tree.enclosing(call, *FUNCTIONS)
        if not isinstance(made, cst.Lambda) or depth >= _MAX_DEPTH:
            return
        above = self._tree.parent(made)
        statement = self._evaluator.flow.statement(made)
        if isinstance(statement, (cst.Assign, cst.AnnAssign)) and above is statement:
            places = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
            for place in places:
                yield from lambdas.calls_of(place, self._evaluator)
        elif isinstance(above, cst.Arg):
            yield from self._run_by_taker(above)

    def _run_by_taker(self, argument: cst.Arg) -> Iterator[cst.Call]:
        """The calls by which what takes a function or lambda runs it."""
        taker = self._tree.parent(argument)
        if not isinstance(taker, cst.Call):
            return
        if self._may_run(taker):
            yield taker
        function = self._evaluator.definitions.definition(taker.func)
        if isinstance(function, cst.FunctionDef):
            taken = parameter_for(function, argument, taker, self._evaluator.definitions)
            yield from lambdas.calls_of(taken.name, self._evaluator) if taken is not None else ()

    def _may_run(self, taker: cst.Call) -> bool:
        """Whether a function of a library may run what it is given, and give what that gives: ``checkpoint(f, x)``."""
        name = self._evaluator.names.qualified(taker.func) or ""
        return name.rpartition(".")[2][:1].islower() or method_call(taker, *_RUN_LATER) is not None

    def _takers(self, call: cst.Call) -> Iterator[cst.Call]:
        """The calls that are given a result, or what is computed of it with its graph."""
        for ancestor in self._tree.ancestors(call):
            if isinstance(ancestor, (*FUNCTIONS, cst.BaseStatement)) or method_call(ancestor, *_DETACHES) is not None:
                return
            if isinstance(ancestor, cst.Call):
                yield ancestor

    def by_attribute(self, held: list[cst.BaseExpression], frame: cst.CSTNode) -> bool:
        """Return whether attributes are computed of variables, and another method backpropagates them."""
        return any(self._backward.reaches(kept, self._tree.module) for kept in self._kept(held, frame))

    def stored(self, call: cst.Call, function: cst.FunctionDef | None) -> bool:
        """Return whether a function keeps what a call gives in an attribute, and another one backpropagates that."""
        held = list(self._held(call, collected=False)) if function is not None else []
        own = [variable for variable in held if isinstance(variable, cst.Attribute)]
        kept = [*own, *(self._kept(held, function) if function is not None else ())]
        frames = [self._evaluator.definitions.enclosing_function(one) for one in self._backward.passes() if kept]
        others = [frame for frame in frames if frame is not None and frame is not function]
        return any(
            self._backward.reaches(attribute, frame) and not self._is_bound_in(attribute, frame)
            for attribute in kept
            for frame in others
        )

    def collected(self, call: cst.Call, frame: cst.CSTNode) -> bool:
        """Return whether a loop collects what a call gives, and somebody differentiates that after the loop.

        ``losses.append(criterion(model(x), y))``, ``autograd.grad(torch.stack(losses).mean(), parameters)``
        """
        loop = self._tree.enclosing(call, cst.For, cst.While)
        kept = list(self._collected_in(call, loop.body)) if isinstance(loop, (cst.For, cst.While)) else []
        return any(
            self._backward.reaches(one, frame) or self._handed.is_given_with_model(one, frame)
            for one in kept
            if not self._is_only_read_detached(one)
        )

    def _collected_in(self, call: cst.Call, body: cst.BaseSuite) -> Iterator[cst.Name]:
        """The variables from before a loop to which a pass adds what is computed of a call."""
        held: list[cst.BaseExpression] = [call]
        for statement in self._tree.below(body, cst.SimpleStatementLine):
            small = statement.body[0]
            value = small.value if isinstance(small, (cst.Assign, cst.AugAssign, cst.Expr)) else None
            if value is None or not (self._tree.within(call, value) or self._mentions(value, held)):
                continue
            if self._backward.detaches(value):
                continue
            added = method_call(value, *PUTS_INTO) if isinstance(small, cst.Expr) else None
            if isinstance(small, cst.Assign):
                names = [name for target in small.targets for name, _ in targets(target.target)]
                held += names
                sides = (value.left, value.right) if isinstance(value, cst.BinaryOperation) else ()
                yield from (name for name in names if any(is_same(name, side) for side in sides))
            elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
                yield small.target
            elif added is not None and isinstance(added.value, cst.Name):
                yield added.value

    def _is_bound_in(self, attribute: cst.Attribute, frame: cst.FunctionDef) -> bool:
        """Whether a function gives an attribute a value of its own."""
        return any(is_same(target.target, attribute) for target in self._tree.below(frame, cst.AssignTarget))

    def _held(self, call: cst.Call, collected: bool) -> Iterator[cst.BaseExpression]:
        """The variables that hold a result afterwards, alone or among others, or one part of it after the other."""
        child: cst.CSTNode = call
        for ancestor in self._tree.ancestors(call):
            if isinstance(ancestor, FUNCTIONS):
                return
            if isinstance(ancestor, cst.Assign) and not collected:
                for bound in ancestor.targets:
                    yield from (bound.target, *(name for name, _ in targets(bound.target)))
            elif isinstance(ancestor, (cst.AugAssign, cst.NamedExpr)):
                yield ancestor.target
            elif isinstance(ancestor, (cst.For, cst.CompFor)) and child is ancestor.iter:
                yield from (name for name, _ in targets(ancestor.target))
            elif isinstance(ancestor, cst.Call) and (added := method_call(ancestor, *PUTS_INTO)) is not None:
                yield added.value
            child = ancestor

    def _is_only_read_detached(self, variable: cst.BaseExpression) -> bool:
        """Whether each use of a variable takes its values without the graph: ``head(features.detach())``."""
        if not isinstance(variable, cst.Name):
            return False
        scopes = self._evaluator.scopes
        own = scopes.deciding(variable.value, scopes.scope(variable))
        same = (n for n in self._tree.named(variable.value) if scopes.deciding(n.value, scopes.scope(n)) is own)
        bound = {id(binding.node) for binding in scopes.bindings(variable)}
        above = [self._tree.parent(name) for name in same if id(name) not in bound]
        return bool(above) and all(isinstance(a, cst.Attribute) and a.attr.value in _DETACHES for a in above)

    def _kept(self, held: list[cst.BaseExpression], frame: cst.CSTNode) -> Iterator[cst.Attribute]:
        """The attributes that are computed of such variables: ``self.objective = torch.stack(terms).sum()``.

        Or that are given them: ``self.losses.update(total=total)``
        """
        for target in self._tree.below(frame, cst.AssignTarget) if held else ():
            statement = self._tree.parent(target)
            value = statement.value if isinstance(statement, cst.Assign) else None
            if isinstance(target.target, cst.Attribute) and value is not None and self._mentions(value, held):
                yield target.target
        for call in self._tree.below(frame, cst.Call) if held else ():
            put = method_call(call, *STORES)
            given = (argument.value for argument in call.args) if put is not None else ()
            if put is not None and isinstance(put.value, cst.Attribute) and any(self._mentions(g, held) for g in given):
                yield put.value

    def _is_returned(self, call: cst.Call, held: list[cst.BaseExpression], frame: cst.FunctionDef) -> bool:
        results = self._evaluator.definitions.results(frame)
        if any(r is call or self._tree.within(call, r) or self._mentions(r, held) for r in results):
            return True
        return self._backward.flows_into(held, results, frame)

    def _mentions(self, value: cst.BaseExpression, held: list[cst.BaseExpression]) -> bool:
        return any(is_same(part, one) for part in self._tree.descendants(value) for one in held)
