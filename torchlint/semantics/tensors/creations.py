"""Tensors made by a factory and moved at once: the factory, the methods in between, and the move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.torch_api import (
    DTYPE_CASTS,
    FACTORIES,
    FILLING_METHODS,
    LEGACY_CONSTRUCTORS,
    RESHAPING_METHODS,
    TENSOR_ATTRIBUTES,
)
from torchlint.semantics.tensors.computed import Computed
from torchlint.semantics.tensors.destinations import Destinations
from torchlint.semantics.tensors.host_functions import HostFunctions
from torchlint.semantics.tensors.moves import Move, Moves
from torchlint.semantics.tensors.optional_moves import optional_move
from torchlint.semantics.tensors.sights import Sights
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import is_same

_VARIABLE = "torch.autograd.Variable"
_PARAMETER = "torch.nn.Parameter"
_KEEPING = RESHAPING_METHODS | FILLING_METHODS | frozenset(DTYPE_CASTS) | {"requires_grad_"}
_ATTRIBUTES = TENSOR_ATTRIBUTES - {"real", "imag"} | {"data"}
_VIEWING = RESHAPING_METHODS - {"repeat"}
_DEFERRING = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)
_OVERLAPPING = frozenset(("expand", "expand_as"))
_TRACERS = frozenset(("torch.jit.trace", "torch.fx.symbolic_trace"))


class Creation(NamedTuple):
    """A tensor that is made in one place and moved to another before anything else happens to it."""

    factory: cst.Call
    move: Move | None
    """None where a function of the file moves it."""

    steps: tuple[cst.CSTNode, ...]
    """What happens to the tensor before the move: calls of methods and of ``Variable``, attributes, subscripts."""

    statement: cst.Assign | None = None
    """The statement of its own in which the tensor is moved: ``x = x.cuda()``."""

    between: tuple[cst.CSTNode, ...] = ()
    """The statements between factory and move."""

    through: cst.Call | None = None
    """The call of the function of the file that moves it."""

    is_roundabout: bool = False
    """Whether it is moved under a test of where to compute, by another name, or as a parameter."""

    is_computed: bool = False
    """Whether it is computed with on the host before what comes of it is moved."""

    @property
    def methods(self) -> frozenset[str]:
        """The names of the methods that are called in between."""
        calls = (step.func for step in self.steps if isinstance(step, cst.Call))
        return frozenset(func.attr.value for func in calls if isinstance(func, cst.Attribute))

    @property
    def casts(self) -> tuple[cst.BaseExpression, ...]:
        """The types that the tensor is cast to in between."""
        calls = [step for step in self.steps if isinstance(step, cst.Call) and isinstance(step.func, cst.Attribute)]
        return tuple(
            argument.value
            for call in calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "type")
            for argument in call.args
        )

    @property
    def takes_part(self) -> bool:
        """Whether the tensor that is moved shows only a part of its memory, or a part of it several times."""
        subscripts = (step for step in self.steps if isinstance(step, cst.Subscript))
        return bool(self.methods & _OVERLAPPING) or not all(_adds_dimensions(step) for step in subscripts)

    @property
    def is_view(self) -> bool:
        """Whether the tensor that is moved may be a view: the move makes a tensor of its own of it."""
        return bool(self.methods & _VIEWING) or any(not isinstance(step, cst.Call) for step in self.steps)

    def keywords(self, *, is_typed: bool) -> str:
        """Return what the factory lacks: the device, and the dtype where both are to be those of another tensor."""
        if self.move is None or not self.move.device:
            return "device=..."
        is_like = self.move.dtype == f"{self.move.device.removesuffix('.device')}.dtype"
        return f"device={self.move.device}" + (f", dtype={self.move.dtype}" if is_like and not is_typed else "")

    @property
    def outermost(self) -> cst.CSTNode:
        """The call that moves the tensor."""
        moved = self.move.call if self.move is not None else self.through
        return moved if moved is not None else self.factory


class Creations:
    """Follows a fresh tensor to where it is moved."""

    def __init__(self, evaluator: Evaluator, moves: Moves) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._moves = moves
        self._destinations = Destinations(evaluator, moves)
        self._sights = Sights(evaluator)
        self._computed = Computed(evaluator, self._destinations, self._sights)
        self._functions = HostFunctions(evaluator)
        self._movers: dict[int, bool] = {}

    def creation(self, call: cst.Call, name: str | None) -> Creation | None:
        """Return what happens to the tensor that a factory makes, if that is a move."""
        if (name not in FACTORIES and name not in LEGACY_CONSTRUCTORS) or self._is_looked_at(call):
            return None
        return self._follow(call, call, ()) or self._compute(call)

    def by_function(self, call: cst.Call) -> Creation | None:
        """Return what happens to the tensor that a function of the file makes on the host, if that is a move."""
        function = self._evaluator.definitions.definition(call.func)
        is_one = isinstance(function, cst.FunctionDef) and self._functions.may_make(function)
        found = self._follow(call, call, ()) if is_one else None
        return found if found is not None and self._functions.makes(call) else None

    def ends_in(self, move: cst.Call) -> bool:
        """Return whether a move is that of a tensor which a factory makes in the same function."""
        enclosing, qualified = self._evaluator.definitions.enclosing_function, self._evaluator.names.qualified
        for call in self._tree.nodes(cst.Call):
            if enclosing(call) is enclosing(move):
                found = self.creation(call, qualified(call.func))
                if found is not None and found.move is not None and found.move.call is move:
                    return True
        return False

    def _compute(self, call: cst.Call) -> Creation | None:
        move = None if self._moves.in_context(call) else self._computed.move(call)
        return Creation(call, move, (), is_roundabout=True, is_computed=True) if move is not None else None

    def _is_looked_at(self, call: cst.Call) -> bool:
        """Whether a lambda around a call is only traced, to look at the operations that it consists of."""
        function = self._tree.enclosing(call, cst.Lambda, cst.FunctionDef)
        holder = self._tree.parent(function) if isinstance(function, cst.Lambda) else None
        tracer = self._tree.parent(holder) if isinstance(holder, cst.Arg) else None
        return isinstance(tracer, cst.Call) and self._evaluator.names.qualified(tracer.func) in _TRACERS

    def _follow(
        self, factory: cst.Call, start: cst.BaseExpression, before: tuple[cst.CSTNode, ...], *, used_once: bool = False
    ) -> Creation | None:
        steps = list(before)
        current: cst.BaseExpression = start
        while True:
            parent = self._tree.parent(current)
            if isinstance(parent, cst.Attribute):
                following = self._after_attribute(parent)
                if isinstance(following, Move):
                    return Creation(factory, following, tuple(steps), is_roundabout=any(map(self._is_parameter, steps)))
            elif isinstance(parent, cst.Subscript):
                following = parent if _is_basic(parent) and parent.value is current else None
            elif isinstance(parent, cst.Arg):
                following = self._after_argument(parent)
                if following is not None and not self._is_wrapper(following):
                    return Creation(factory, None, tuple(steps), through=following)
            elif isinstance(parent, (cst.Assign, cst.AnnAssign)) and parent.value is current:
                return self._after_assignment(factory, parent, tuple(steps)) if not before or used_once else None
            else:
                return None
            if following is None:
                return None
            steps.append(following)
            current = following

    def _after_attribute(self, attribute: cst.Attribute) -> cst.BaseExpression | Move | None:
        name = attribute.attr.value
        call = self._tree.parent(attribute)
        if not isinstance(call, cst.Call) or call.func is not attribute:
            return attribute if name in _ATTRIBUTES else None
        move = self._destinations.move(call)
        if move is not None and (name != "type" or move.place is not Device.CPU):
            return move
        return call if name in _KEEPING or self._only_casts(call, name) else None

    def _only_casts(self, call: cst.Call, name: str) -> bool:
        if name not in ("to", "type") or len(call.args) != 1 or call.args[0].star:
            return False
        argument = call.args[0].value
        if name == "type" or self._evaluator.value(argument).kind is Kind.DTYPE:
            return True
        return identifier(argument).endswith("dtype") or self._moves.tensor_type(argument) is not None

    def _after_argument(self, argument: cst.Arg) -> cst.Call | None:
        call = self._tree.parent(argument)
        if not isinstance(call, cst.Call) or call.args[0] is not argument or argument.star:
            return None
        if argument.keyword is not None and argument.keyword.value != "data":
            return None
        return call if self._is_wrapper(call) or self._is_mover(call) else None

    def _is_wrapper(self, call: cst.Call) -> bool:
        return self._is_variable(call) or self._is_parameter(call)

    def _is_parameter(self, step: cst.CSTNode) -> bool:
        """Whether a step makes a parameter, which the move makes a plain tensor of: no fix keeps that."""
        return isinstance(step, cst.Call) and self._evaluator.names.qualified(step.func) == _PARAMETER

    def _is_variable(self, call: cst.Call) -> bool:
        return self._evaluator.names.qualified(call.func) == _VARIABLE

    def _is_mover(self, call: cst.Call) -> bool:
        """Whether a function of the file hands its first argument back on a device."""
        function = self._evaluator.definitions.definition(call.func)
        if not isinstance(function, cst.FunctionDef):
            return False
        key = id(function)
        if key not in self._movers:
            self._movers[key] = False
            self._movers[key] = self._moves_its_argument(function)
        return self._movers[key]

    def _moves_its_argument(self, function: cst.FunctionDef) -> bool:
        parameters = (*function.params.posonly_params, *function.params.params)
        if self._evaluator.definitions.owner(function) is not None:
            parameters = parameters[1:]
        if not parameters:
            return False
        name = parameters[0].name.value
        returns = [
            r for r in self._tree.nodes(cst.Return) if self._evaluator.definitions.enclosing_function(r) is function
        ]
        moved = [value for value in self._passed_on(function) if self._moved_name(value) == name]
        return (
            bool(moved)
            and bool(returns)
            and all(r.value is not None and self._hands_back(r.value, name) for r in returns)
        )

    def _hands_back(self, expression: cst.BaseExpression, name: str) -> bool:
        return all(self._base_name(branch) == name for branch in _branches(expression))

    def _passed_on(self, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
        """Yield what a function returns and what it assigns."""
        for node in self._tree.descendants(function.body):
            if isinstance(node, (cst.Return, cst.Assign)) and node.value is not None:
                yield from _branches(node.value)

    def _moved_name(self, expression: cst.BaseExpression) -> str | None:
        moves = (self._moves.move(link) for link in self._chain(expression) if isinstance(link, cst.Call))
        goes = any(move is not None and move.place in (Device.ACCELERATOR, Device.EITHER) for move in moves)
        return self._base_name(expression) if goes else None

    def _base_name(self, expression: cst.BaseExpression) -> str | None:
        last = expression
        for link in self._chain(expression):
            last = link
        return last.value if isinstance(last, cst.Name) else None

    def _chain(self, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield an expression and what it is made of, through methods and ``Variable``."""
        current: cst.BaseExpression | None = expression
        while current is not None:
            yield current
            if isinstance(current, cst.Call) and self._is_variable(current) and current.args:
                current = current.args[0].value
            elif isinstance(current, cst.Call) and isinstance(current.func, cst.Attribute):
                current = current.func.value
            else:
                current = None

    def _after_assignment(
        self, factory: cst.Call, assign: cst.Assign | cst.AnnAssign, steps: tuple[cst.CSTNode, ...]
    ) -> Creation | None:
        """Look for ``x = x.cuda()`` in the same block, before any other use of x."""
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else assign.target
        if isinstance(assign, cst.Assign) and len(assign.targets) != 1:
            return None
        if not isinstance(target, (cst.Name, cst.Attribute)):
            return None
        between: list[cst.CSTNode] = []
        for statement in self._sights.later(assign):
            if isinstance(statement, cst.Assign) and _rebinds(statement, target):
                moved = self._moved_there(factory, statement, statement.value, target, steps, tuple(between))
                return moved or self._moved_on_demand(factory, statement, target, steps)
            if self._sights.may_use(statement, target):
                asked = self._moved_on_demand(factory, statement, target, steps)
                return asked or self._used_once(factory, statement, target, steps)
            between.append(statement)
        return None

    def _moved_on_demand(
        self, factory: cst.Call, statement: cst.CSTNode, target: cst.BaseExpression, steps: tuple[cst.CSTNode, ...]
    ) -> Creation | None:
        """Look for ``if use_cuda: x = x.cuda()``."""
        asked = optional_move(statement, target, self._tree)
        there = asked.statement if asked is not None and isinstance(asked.statement, cst.Assign) else None
        found = self._moved_there(factory, there, asked.value, target, steps, ()) if asked is not None else None
        if asked is None or found is None or found.move is None:
            return None
        move = found.move._replace(device_source=asked.device(found.move.device))
        return found._replace(move=move, is_roundabout=True)

    def _used_once(
        self, factory: cst.Call, statement: cst.CSTNode, target: cst.BaseExpression, steps: tuple[cst.CSTNode, ...]
    ) -> Creation | None:
        """Look for a statement that is the only one to use a local ``x``, and moves it: ``row = x[None].cuda()``."""
        if not isinstance(target, cst.Name) or not isinstance(statement, cst.BaseSmallStatement):
            return None
        is_local = self._evaluator.definitions.enclosing_function(target) is not None
        uses = [
            node for node in self._tree.descendants(statement) if isinstance(node, cst.Name) and is_same(node, target)
        ]
        around = [a for a in self._tree.ancestors(uses[0]) if self._tree.within(a, statement)] if uses else []
        if not is_local or len(uses) != 1 or any(isinstance(ancestor, _DEFERRING) for ancestor in around):
            return None
        found = self._follow(factory, uses[0], steps, used_once=True)
        if found is None or not self._is_used_up(statement, target):
            return None
        return found._replace(is_roundabout=True)

    def _is_used_up(self, statement: cst.BaseSmallStatement, target: cst.Name) -> bool:
        """Whether nothing else reads what is bound to a name: no other place has it, or none after a `return`."""
        mentions = self._sights.mentions(target)
        if len(mentions) == 2 or not isinstance(statement, cst.Return):
            return len(mentions) == 2
        enclosing, order = self._evaluator.definitions.enclosing_function, self._tree.order
        around = enclosing(target)
        return all(
            enclosing(name) is around and (order(name) < order(statement) or self._tree.within(name, statement))
            for name in mentions
        )

    def _moved_there(
        self,
        factory: cst.Call,
        statement: cst.Assign | None,
        value: cst.BaseExpression,
        target: cst.BaseExpression,
        steps: tuple[cst.CSTNode, ...],
        between: tuple[cst.CSTNode, ...],
    ) -> Creation | None:
        uses = [n for n in self._tree.descendants(value) if _is_same(n, target)]
        if len(uses) != 1 or not isinstance(uses[0], (cst.Name, cst.Attribute)):
            return None
        found = self._follow(factory, uses[0], (*steps, uses[0]))
        if found is None:
            return None
        kept = tuple(step for step in found.steps if step is not uses[0])
        return found._replace(steps=kept, statement=statement, between=between)


def _adds_dimensions(subscript: cst.Subscript) -> bool:
    """Return whether an index takes everything: ``[None]``, ``[..., None]``, ``[:, None]``."""
    for element in subscript.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            if index.lower is not None or index.upper is not None or index.step is not None:
                return False
        elif isinstance(index, cst.Index) and isinstance(index.value, cst.Integer):
            return False
    return True


def _branches(expression: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """Return the values that a conditional expression can have; of any other itself."""
    if isinstance(expression, cst.IfExp):
        return (*_branches(expression.body), *_branches(expression.orelse))
    return (expression,)


def _rebinds(statement: cst.Assign, target: cst.BaseExpression) -> bool:
    """Return whether a statement rebinds a variable, alone or as one of several: ``h, c = h.cuda(), c.cuda()``."""
    if len(statement.targets) != 1:
        return False
    bound = statement.targets[0].target
    if isinstance(bound, cst.Tuple) and isinstance(statement.value, cst.Tuple):
        return any(is_same(element.value, target) for element in bound.elements)
    return is_same(bound, target)


def _is_same(node: cst.CSTNode, target: cst.BaseExpression) -> bool:
    return isinstance(target, (cst.Name, cst.Attribute)) and is_same(target, node)


def _is_basic(subscript: cst.Subscript) -> bool:
    """Return whether an index only takes views: slices, ``None`` and ``...``."""
    for element in subscript.slice:
        index = element.slice
        if isinstance(index, cst.Index):
            value = index.value
            if not (
                isinstance(value, (cst.Ellipsis, cst.Integer))
                or (isinstance(value, cst.Name) and value.value == "None")
            ):
                return False
    return True
