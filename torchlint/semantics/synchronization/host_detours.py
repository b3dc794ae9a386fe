"""What is computed on the host between a copy from the device and a copy back: ``f(x.cpu()).to(x.device)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.binding.scopes import targets as bound_names
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.synchronization.host_reasons import HostReasons
from torchlint.semantics.tables.container_methods import STORES
from torchlint.semantics.values import Device
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.tensors.moves import Moves

_MAKING = frozenset(("torch.tensor", "torch.as_tensor", "torch.asarray"))
# What makes a result of a size, or of a kind, whose elements are others.
_SIZING = frozenset(
    (
        "len range isinstance type print zeros ones empty full rand randn arange eye zeros_like ones_like empty_like "
        "full_like linspace new_zeros new_ones new_empty new_full"
    ).split()
)
_SIZED = frozenset(
    (
        "view reshape expand repeat narrow unflatten unfold split split_with_sizes chunk topk repeat_interleave tile "
        "array_split tensor_split interpolate pad resize_ select transpose permute flatten squeeze unsqueeze"
    ).split()
)
PROPERTIES = frozenset("shape size dim ndim device dtype numel nelement is_cuda requires_grad".split())
_ENDING = (cst.Lambda, cst.BaseFormattedStringContent, cst.CompIf, cst.Param)
"""Where what is made of a value is no longer a value of the function."""
_COMPUTING = (cst.Call, cst.BinaryOperation, cst.Comparison, cst.BaseComp)
OTHER_DEVICES = ("npu", "xpu", "mlu", "musa", "hpu")
"""Methods that move to the devices of other makers, as ``cuda`` does."""


class _Step(NamedTuple):
    """A place where what is made of a copy is read, and whether anything was computed of it: else it is only kept."""

    node: cst.CSTNode
    is_computed: bool


class HostDetours:
    """Follows what is copied to the host to where it goes back, within one function."""

    def __init__(self, evaluator: Evaluator, moves: Moves, reasons: HostReasons) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._moves = moves
        self._reasons = reasons

    @remembered
    def back(self, copy: cst.Call) -> cst.Call | None:
        """Return the call that brings what the host made of a copy back to a device, None if there is none.

        None too where the code asks for the device before, or the host is the place for what is computed.
        """
        function = self._evaluator.definitions.enclosing_function(copy)
        if function is None or self._reasons.is_deliberate(copy):
            return None
        pending: list[_Step] = [_Step(copy, False)]
        followed: set[tuple[int, bool]] = set()
        found: list[cst.Call] = []
        while pending:
            step = pending.pop()
            if (id(step.node), step.is_computed) not in followed:
                followed.add((id(step.node), step.is_computed))
                found += self._follow(step, pending)
        is_needed = any(map(self._reasons.belongs_there, found)) or any(map(self._reasons.is_deliberate, found))
        if not found or is_needed or self._reasons.goes_step_by_step(copy, found[-1], function):
            return None
        return found[-1]

    def _follow(self, step: _Step, pending: list[_Step]) -> Iterator[cst.Call]:
        """Yield the call around a step that moves it back, or has it on the host; its variables become ``pending``."""
        child, is_computed = step
        for ancestor in self._tree.ancestors(child):
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.CompFor, cst.NamedExpr)):
                pending += (_Step(name, is_computed) for name in self._bound(child, ancestor))
                if not isinstance(ancestor, cst.NamedExpr):
                    return
            elif isinstance(ancestor, cst.Call):
                goes_back, belongs_there = self.goes_back(ancestor, child), self._reasons.belongs_there(ancestor)
                if (goes_back and is_computed) or belongs_there:
                    yield ancestor
                if goes_back or belongs_there:
                    return
                pending += (_Step(name, is_computed) for name in self._stored(ancestor, child))
                if not self._computes_there(ancestor, child):
                    return
            elif not self._passes(ancestor, child):
                return
            is_computed = is_computed or isinstance(ancestor, _COMPUTING)
            child = ancestor

    def _passes(self, ancestor: cst.CSTNode, child: cst.CSTNode) -> bool:
        """Whether an expression is made of the values of a part of it."""
        if isinstance(ancestor, cst.Attribute):
            return ancestor.attr.value not in PROPERTIES
        if isinstance(ancestor, cst.Subscript):
            return child is ancestor.value
        if isinstance(ancestor, cst.IfExp):
            return child is not ancestor.test
        if isinstance(ancestor, cst.BinaryOperation):
            return not self.is_elsewhere(ancestor.right if child is ancestor.left else ancestor.left)
        return not isinstance(ancestor, _ENDING)

    def goes_back(self, call: cst.Call, child: cst.CSTNode) -> bool:
        """Return whether a call copies a part of it to a device."""
        if child is call.func:
            if method_call(call, *OTHER_DEVICES) is not None:
                return not call.args
            if literal(bind(call.args).get("non_blocking")) is True:
                return False  # somebody has thought about what waits
            move = self._moves.move(call)
            return move.place is not Device.CPU if move is not None else self._moves.to_other(call) is not None
        method = method_call(call, "new_tensor")
        if method is not None:
            return child is call.args[0] and self.is_elsewhere(method.value)
        if self._evaluator.names.qualified(call.func) not in _MAKING or child is not call.args[0]:
            return False
        device = bind(call.args).get("device")
        return device is not None and self._moves.leaves_host(device, Evidence.PROVEN)

    def _computes_there(self, call: cst.Call, child: cst.CSTNode) -> bool:
        """Whether a call makes something on the host of a part of it, which a device could do as well."""
        if child is call.func:
            return True
        last = identifier(call.func)
        if last in _SIZING or last in _SIZED:
            return last == "len" and isinstance(child, cst.Arg) and self._is_item(child.value)
        receiver = [call.func.value] if isinstance(call.func, cst.Attribute) else []
        others = [*receiver, *(argument.value for argument in call.args if argument is not child)]
        return not any(map(self.is_elsewhere, others))

    def _is_item(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is an item of what was computed, whose length is a result as well."""
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else ()
        return any(binding.kind is BindingKind.ITERATION for binding in bindings)

    def is_elsewhere(self, other: cst.BaseExpression) -> bool:
        """Return whether an expression is a tensor that may be on a device, and so what is computed with it."""
        value = self._evaluator.value(other)
        return value.is_tensor and value.evidence >= Evidence.INFERRED and value.device is not Device.CPU

    def _stored(self, call: cst.Call, child: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield where a variable is read later to which a method adds a part of its call: ``found.append(x)``."""
        method = method_call(call, *STORES)
        if method is not None and child is not call.func and isinstance(method.value, cst.Name):
            yield from self._read_later(method.value)

    def _bound(self, child: cst.CSTNode, statement: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield where the variables are read that a statement binds to a part of it, or in which it stores that."""
        if isinstance(statement, cst.Assign):
            targets: list[cst.BaseExpression] = (
                [each.target for each in statement.targets] if child is statement.value else []
            )
        elif isinstance(statement, (cst.For, cst.CompFor)):
            targets = [statement.target] if child is statement.iter else []
        elif isinstance(statement, (cst.AnnAssign, cst.AugAssign, cst.NamedExpr)):
            targets = [statement.target]
        else:
            targets = []
        for target in targets:
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                if not self.is_elsewhere(target.value):
                    yield from self._read_later(target.value)
            else:
                yield from (name for bound, _ in bound_names(target) for name in self.reads(bound, child))

    def reads(self, bound: cst.Name, child: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield the names that can have the value that a place binds, if that is made of ``child``."""
        for name in self._tree.named(bound.value):
            found = (b for b in self._evaluator.flow.definitions(name) if name is not bound and b.node is bound)
            if any(b.part is None or child is bound or self._tree.within(child, b.part) for b in found):
                yield name

    def _read_later(self, variable: cst.Name) -> Iterator[cst.Name]:
        enclosing = self._evaluator.definitions.enclosing_function
        for name in self._tree.named(variable.value):
            if self._tree.order(name) > self._tree.order(variable) and enclosing(name) is enclosing(variable):
                yield name
