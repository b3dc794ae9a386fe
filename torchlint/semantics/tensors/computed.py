"""Tensors that the host makes, computes with, and moves in the end: ``(torch.arange(n) * k).to(device)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.torch_api import SIZED_FACTORIES
from torchlint.semantics.tensors.destinations import Destinations
from torchlint.semantics.tensors.host_values import HostValues
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.tensors.sights import Sights
from torchlint.syntax.canonical import is_same

_DEFERRING = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)
# Between an expression and the one that it is a part of.
_INSIDE = (cst.Arg, cst.Attribute, cst.BaseElement, cst.List, cst.Tuple, cst.ComparisonTarget)
_INSIDE_SUBSCRIPTS = (cst.SubscriptElement, cst.BaseSlice)
# So many kernels on the device cost no more than to wait for a copy.
_MOST_STEPS = 8
_ASKED = ("shape", "ndim", "dtype")
_ASKING = ("size", "dim", "numel", "nelement", "ndimension")


class Computed:
    """Follows what the host computes of a fresh tensor to where it is moved."""

    def __init__(self, evaluator: Evaluator, destinations: Destinations, sights: Sights) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._destinations = destinations
        self._sights = sights
        self._values = HostValues(evaluator)

    def move(self, factory: cst.Call) -> Move | None:
        """Return the move of what is computed of a factory's tensor, for the first factory that takes part."""
        if not self._values.is_fresh(factory):
            return None
        whole = self._whole(factory)
        move = self._move_of(whole)
        if move is not None:
            return move if self._first(move.receiver) is factory else None
        return self._of_variable(factory, whole)

    def _whole(self, part: cst.BaseExpression) -> cst.BaseExpression:
        """The largest expression around a fresh one that is fresh as well."""
        whole = part
        for ancestor in self._tree.ancestors(part):
            if isinstance(ancestor, _INSIDE + _INSIDE_SUBSCRIPTS) and not self._values.is_fresh(ancestor):
                continue
            if not isinstance(ancestor, cst.BaseExpression) or not self._values.is_fresh(ancestor):
                break
            whole = ancestor
        return whole

    def _move_of(self, tensor: cst.BaseExpression) -> Move | None:
        attribute = self._tree.parent(tensor)
        call = self._tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        if not isinstance(call, cst.Call) or call.func is not attribute:
            return None
        return self._destinations.move(call)

    def _first(self, tensor: cst.BaseExpression) -> cst.CSTNode | None:
        """The first factory or fresh variable that takes part in a computation: the one to report it at."""
        for node in self._tree.descendants(tensor):
            if isinstance(node, cst.Name) and self._values.is_fresh(node):
                return node
            if isinstance(node, cst.Call) and self._evaluator.names.qualified(node.func) in SIZED_FACTORIES:
                return node
        return None

    def _of_variable(self, factory: cst.Call, whole: cst.BaseExpression) -> Move | None:
        """Return the move of a local variable that holds the tensor, if all its uses compute with it on the host."""
        assign = self._tree.parent(whole)
        if not isinstance(assign, (cst.Assign, cst.AnnAssign)) or assign.value is not whole:
            return None
        variable = _target(assign)
        function = self._evaluator.definitions.enclosing_function(assign)
        if not isinstance(variable, cst.Name) or function is None or self._first(whole) is not factory:
            return None
        steps = 0
        for statement in self._sights.later(assign):
            if variable.value not in self._sights.names(statement):
                continue
            if not isinstance(statement, cst.BaseSmallStatement) or steps > _MOST_STEPS:
                return None
            if self._computes(statement, variable):
                steps += 1
                continue
            move = self._moved_in(statement, variable)
            return move if move is not None and self._is_all(assign, statement, variable) else None
        return None

    def _uses(self, statement: cst.CSTNode, variable: cst.Name) -> list[cst.Name]:
        """The places at which a statement needs the numbers of a tensor, not only its shape or type."""
        same = (n for n in self._tree.descendants(statement) if isinstance(n, cst.Name) and is_same(n, variable))
        return [name for name in same if not self._asks_for_shape(name)]

    def _asks_for_shape(self, name: cst.Name) -> bool:
        parent = self._tree.parent(name)
        if isinstance(parent, cst.Attribute):
            call = self._tree.parent(parent)
            is_called = isinstance(call, cst.Call) and call.func is parent
            return parent.attr.value in (_ASKING if is_called else _ASKED)
        call = self._tree.parent(parent) if isinstance(parent, cst.Arg) else None
        return isinstance(call, cst.Call) and self._evaluator.names.qualified(call.func) == "builtins.len"

    def _computes(self, statement: cst.BaseSmallStatement, variable: cst.Name) -> bool:
        """Whether a statement only fills a tensor, computes it anew on the host, or asks for its shape."""
        if not self._uses(statement, variable):
            return True
        if isinstance(statement, cst.AugAssign):
            return self._is_part(statement.target, variable) and self._values.is_own(statement.value)
        if isinstance(statement, cst.Expr):
            return self._values.is_fresh(statement.value)
        target = _target(statement) if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
        if target is None or not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is None:
            return False
        return self._is_part(target, variable) and self._values.is_own(statement.value)

    def _is_part(self, target: cst.BaseExpression, variable: cst.Name) -> bool:
        """Whether a target is the variable, or a part of it that is chosen without another tensor."""
        while isinstance(target, cst.Subscript):
            if not self._values.is_own_index(target):
                return False
            target = target.value
        return is_same(target, variable)

    def _moved_in(self, statement: cst.BaseSmallStatement, variable: cst.Name) -> Move | None:
        """The move in a statement of all that the variable is needed for there."""
        uses = [use for use in self._uses(statement, variable) if not self._is_bound(use)]
        if not uses:
            return None
        move = self._move_of(self._whole(uses[0])) if self._values.is_fresh(uses[0]) else None
        if move is None or self._first(move.receiver) is not uses[0]:
            return None
        if not all(self._tree.within(use, move.receiver) for use in uses):
            return None
        around = (a for a in self._tree.ancestors(move.call) if self._tree.within(a, statement))
        return None if any(isinstance(a, _DEFERRING) for a in around) else move

    def _is_bound(self, name: cst.Name) -> bool:
        parent = self._tree.parent(name)
        return isinstance(parent, (cst.AssignTarget, cst.AnnAssign)) and parent.target is name

    def _is_all(self, assign: cst.CSTNode, last: cst.CSTNode, variable: cst.Name) -> bool:
        """Whether nothing else can see the tensor: after a move that gives its name to the result, or anywhere."""
        places = self._sights.mentions(variable)
        enclosing = self._evaluator.definitions.enclosing_function
        if any(enclosing(place) is not enclosing(variable) for place in places):
            return False
        if isinstance(last, cst.Assign) and len(last.targets) == 1 and is_same(last.targets[0].target, variable):
            return True
        first, end = self._tree.order(assign), self._tree.last(last)
        return all(first <= self._tree.order(place) <= end for place in places)


def _target(assign: cst.Assign | cst.AnnAssign) -> cst.BaseExpression | None:
    if isinstance(assign, cst.AnnAssign):
        return assign.target
    return assign.targets[0].target if len(assign.targets) == 1 else None
