"""Totals and lists that a loop fills, and that nobody reads before the loop is over."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.scopes import Binding, BindingKind
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import literal, method_call

INTEGER_DTYPES = frozenset(("torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool"))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A local variable to which each pass of a loop adds one number."""

    name: str
    is_list: bool
    is_integer: bool


class Accumulations:
    """Finds the variable that a scalar read goes into, if the loop alone uses it until it ends."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def find(self, read: cst.Call, tensor: Value, loop: cst.For) -> Accumulation | None:
        """Return the accumulation that a read in the body of a loop feeds, None if anything about it is unclear."""
        if loop.orelse is not None or loop.asynchronous is not None:
            return None
        integer = is_integer(tensor)
        parent = self._tree.parent(read)
        if isinstance(parent, cst.Arg):
            return self._list(read, parent, loop)
        if integer is None:
            return None
        statement = self._sum(read, integer)
        if statement is None or not isinstance(statement.target, cst.Name):
            return None
        if not self._only_fed_by(statement.target, statement.target, loop):
            return None
        starts = [b for b in self._bindings(statement.target) if b.kind is not BindingKind.AUGMENTED]
        if not starts or not all(_is_number(b) for b in starts):
            return None
        return Accumulation(statement.target.value, is_list=False, is_integer=integer)

    def _sum(self, read: cst.Call, integer: bool) -> cst.AugAssign | None:
        """The ``total += read`` around a read; a float may be scaled by numbers on the way."""
        node: cst.CSTNode = read
        parent = self._tree.parent(node)
        while isinstance(parent, cst.BinaryOperation) and not integer:
            other = parent.right if parent.left is node else parent.left
            scales = isinstance(parent.operator, cst.Multiply) or (
                isinstance(parent.operator, cst.Divide) and parent.left is node
            )
            if not scales or self._evaluator.value(other).kind is not Kind.NUMBER:
                return None
            node, parent = parent, self._tree.parent(parent)
        if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, cst.AddAssign):
            return parent
        return None

    def _list(self, read: cst.Call, argument: cst.Arg, loop: cst.For) -> Accumulation | None:
        call = self._tree.parent(argument)
        append = method_call(call, "append")
        if (
            append is None
            or not isinstance(append.value, cst.Name)
            or not isinstance(call, cst.Call)
            or len(call.args) != 1
        ):
            return None
        bindings = self._bindings(append.value)
        if len(bindings) != 1 or not isinstance(bindings[0].value, cst.List) or bindings[0].value.elements:
            return None
        if not isinstance(self._tree.parent(call), cst.Expr) or not self._only_fed_by(append.value, append.value, loop):
            return None
        start = self._evaluator.flow.blocks(bindings[0].node)
        around = self._evaluator.flow.blocks(loop)
        if not start or not around or start[0][0] is not around[0][0]:
            return None
        return Accumulation(append.value.value, is_list=True, is_integer=False)

    def _bindings(self, name: cst.Name) -> list[Binding]:
        return self._evaluator.scopes.bindings(name)

    def _only_fed_by(self, name: cst.Name, feed: cst.Name, loop: cst.For) -> bool:
        """Whether ``feed`` is the only use of a variable in a loop, and no other function sees it."""
        scopes = self._evaluator.scopes
        deciding = scopes.deciding(name.value, scopes.scope(name))
        function = self._evaluator.definitions.enclosing_function(name)
        for use in self._tree.nodes(cst.Name):
            if use.value != name.value or scopes.deciding(use.value, scopes.scope(use)) is not deciding:
                continue
            if self._evaluator.definitions.enclosing_function(use) is not function:
                return False
            if use is not feed and any(ancestor is loop for ancestor in self._tree.ancestors(use)):
                return False
        return deciding is not None and name.value not in scopes.scope(name).delegated


def is_integer(tensor: Value) -> bool | None:
    """Return whether reading a tensor gives an int (True) or a float (False); None where neither is certain."""
    if tensor.dtype is not None:
        return tensor.dtype in INTEGER_DTYPES
    return False if tensor.origin is Origin.LOSS else None


def _is_number(binding: Binding) -> bool:
    if binding.kind is not BindingKind.ASSIGNMENT or binding.value is None:
        return False
    if binding.path and isinstance(binding.value, (cst.Tuple, cst.List)):
        index = binding.path[0]
        if len(binding.path) > 1 or index < 0 or index >= len(binding.value.elements):
            return False
        return isinstance(literal(binding.value.elements[index].value), (int, float))
    return not binding.path and isinstance(literal(binding.value), (int, float))
