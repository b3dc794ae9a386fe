"""Copies to the host with which only torch computes, before all that comes of them goes back to a device."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.synchronization.host_detours import OTHER_DEVICES, PROPERTIES, HostDetours
from torchlint.semantics.synchronization.host_reasons import HostReasons
from torchlint.semantics.tables.torch_api import SIZED_FACTORIES
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import bind, identifier, is_none, literal, method_call
from torchlint.syntax.remembered import remembered

_MODULES = ("torch", "torch.nn.functional", "torch.special", "torch.utils.dlpack")
_TAKING_OVER = frozenset("from_numpy from_dlpack tensor as_tensor asarray".split())
# What no device does, what is no computation, and what takes rows of a table that the host may have to keep.
_OF_HOST = frozenset(
    "histogram histogramdd save item tolist numpy apply_ map_ share_memory_ pin_memory cpu embedding "
    "embedding_bag double".split()
)
# What draws other numbers on a device; where a function seeds also what it samples.
_DRAWN = frozenset(
    "rand_like randn_like randint_like bernoulli bernoulli_ normal normal_ uniform_ exponential_ poisson random_ "
    "dropout".split()
)
_SEEDS = ("manual_seed", "seed_everything", "set_seed")
_DETERMINISTIC = ("use_deterministic_algorithms",)
_SETTINGS = frozenset(
    "dim dims axis keepdim dtype mode ord norm normalization size sizes shape scale_factor align_corners antialias "
    "kernel_size stride padding dilation groups shifts diagonal offset descending largest sorted stable unbiased "
    "correction num_classes eps decimals ceil_mode indexing sections chunks split_size start_dim end_dim minlength "
    "side right as_tuple rounding_mode reduction padding_mode return_inverse return_counts n_fft hop_length".split()
)
# What makes much of little, for which the device may lack the memory.
_LARGE = frozenset(
    "cdist pdist mm matmul bmm einsum tensordot outer kron cartesian_prod combinations interpolate upsample unfold "
    "one_hot repeat repeat_interleave".split()
)
_DOUBLE = ("torch.float64", "torch.double")
_KEEPING = frozenset("detach clone contiguous requires_grad_".split())
_ARITHMETIC = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
_INSIDE = (cst.Arg, cst.Element, cst.ComparisonTarget)
_FRAMES = (cst.For, cst.While, cst.FunctionDef, cst.Lambda)
_DEPTH = 3
"""Through how many variables a tensor is followed to the copy that it is made of."""


class _State(IntEnum):
    """What a place holds of a copy."""

    ARRAY = 0
    """Its values outside of torch."""

    COPIED = 1
    COMPUTED = 2


class _Trip(NamedTuple):
    """What has been found of a round trip so far."""

    pending: list[tuple[cst.CSTNode, _State]]
    """Where what is made of the copy is read."""

    ends: list[cst.Call]


class TorchRoundTrips:
    """Follows a copy to every place where it, or what is made of it, is read."""

    def __init__(self, evaluator: Evaluator, detours: HostDetours, reasons: HostReasons) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._detours = detours
        self._reasons = reasons

    @remembered
    def back(self, copy: cst.Call) -> cst.Call | None:
        """Return the call that moves to a device what torch made of a copy, None if anything else reads of it."""
        function = self._evaluator.definitions.enclosing_function(copy)
        if function is None or self._reasons.is_deliberate(copy) or self._evaluator.vocabulary.mentions(_DETERMINISTIC):
            return None
        is_array = method_call(copy, "numpy", "tolist") is not None
        trip = _Trip([(copy, _State.ARRAY if is_array else _State.COPIED)], [])
        followed: set[tuple[int, _State]] = set()
        while trip.pending:
            node, state = trip.pending.pop()
            if (id(node), state) not in followed:
                followed.add((id(node), state))
                if not self._follow(node, state, trip):
                    return None
        if not trip.ends or not all(self._runs_with(copy, end) for end in trip.ends):
            return None
        return None if self._reasons.goes_step_by_step(copy, trip.ends[-1], function) else trip.ends[-1]

    def _runs_with(self, copy: cst.Call, end: cst.Call) -> bool:
        """Whether what moves the result runs in the same pass of a loop as the copy, and whenever that is made."""
        if self._tree.enclosing(copy, *_FRAMES) is not self._tree.enclosing(end, *_FRAMES):
            return False
        child: cst.CSTNode = copy
        for ancestor in self._tree.ancestors(copy):
            if isinstance(ancestor, _FRAMES):
                break
            if isinstance(ancestor, (cst.If, cst.IfExp)) and not self._tree.within(end, child):
                return False
            child = ancestor
        return not self._reasons.is_deliberate(end)

    def _follow(self, child: cst.CSTNode, state: _State, trip: _Trip) -> bool:
        """Whether torch alone gets what a node gives; where it is moved, or read again, becomes part of the trip."""
        for ancestor in self._tree.ancestors(child):
            if isinstance(ancestor, cst.Call):
                if self._detours.goes_back(ancestor, child):
                    trip.ends.append(ancestor)
                    return state is not _State.COPIED
                if not self._computes(ancestor, child, state) or self._changes(ancestor, state):
                    return False
                state = state if identifier(ancestor.func) in _KEEPING else _State.COMPUTED
            elif isinstance(ancestor, cst.AssignTarget):
                return state is not _State.COPIED  # `copy[0] = 1` leaves the original as it is
            elif isinstance(ancestor, cst.BaseSmallStatement):
                return self._is_kept(ancestor, child, state, trip)
            elif isinstance(ancestor, (cst.List, cst.Tuple)):
                if not all(self._may_be_beside(element.value) for element in ancestor.elements if element is not child):
                    return False
            elif isinstance(ancestor, _INSIDE):
                pass
            elif state is _State.ARRAY:
                return False
            elif isinstance(ancestor, cst.Attribute):
                if ancestor.attr.value in PROPERTIES:
                    return True
            elif isinstance(ancestor, _ARITHMETIC):
                is_product = isinstance(getattr(ancestor, "operator", None), cst.MatrixMultiply)
                others = (other for other in _operands(ancestor) if other is not child)
                if is_product or not all(map(self._may_be_beside, others)):
                    return False
                state = _State.COMPUTED
            elif not isinstance(ancestor, cst.Subscript) or child is not ancestor.value:
                return False
            child = ancestor
        return False

    def _changes(self, call: cst.Call, state: _State) -> bool:
        """Whether a method changes a copy in place, and not the tensor of which it is one."""
        name = identifier(call.func)
        return state is _State.COPIED and name.endswith("_") and name not in _KEEPING

    def _is_kept(self, statement: cst.BaseSmallStatement, child: cst.CSTNode, state: _State, trip: _Trip) -> bool:
        """Whether a statement binds a part of it to variables, and does no more, or changes it in place."""
        if isinstance(statement, cst.Expr):
            return isinstance(child, cst.Call) and identifier(child.func).endswith("_")
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or child is not statement.value:
            return False
        target = statement.targets[0].target
        several = [element.value for element in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else None
        for bound in several or [target]:
            if not isinstance(bound, cst.Name):
                return False
            reads = (name for name in self._detours.reads(bound, child) if not self._is_target(name))
            trip.pending.extend((name, state) for name in reads)
        return True

    def _is_target(self, name: cst.Name) -> bool:
        """Whether an assignment binds a name, which is no read of it."""
        parent = self._tree.parent(name)
        while isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
            parent = self._tree.parent(parent)
        return isinstance(parent, cst.AssignTarget)

    def _computes(self, call: cst.Call, child: cst.CSTNode, state: _State) -> bool:
        """Whether a call is a method of a tensor, or a function of torch, that devices have as well."""
        last = identifier(call.func)
        draws = last in _DRAWN or (last == "multinomial" and self._seeds_before(call))
        if draws or last in _OF_HOST or last in _LARGE or bind(call.args).open or self._reasons.belongs_there(call):
            return False
        cast = [self._evaluator.value(argument.value) for argument in call.args] if last == "to" else []
        if any(value.kind is not Kind.DTYPE or value.dtype in _DOUBLE for value in cast):
            return False
        is_function = (self._evaluator.names.qualified(call.func) or "").rpartition(".")[0] in _MODULES
        if state is _State.ARRAY and not (is_function and last in _TAKING_OVER):
            return False
        method = call.func if isinstance(call.func, cst.Attribute) and not is_function else None
        operand = method if child is method else method.value if method else call.args[0] if is_function else None
        if operand is not child and not (method is not None and self._is_copy(method.value)):
            return False
        settings = (a.value for a in call.args if a is not child and self._is_setting(a))
        others = (a.value for a in call.args if a is not child and not self._is_setting(a))
        return all(map(self._may_be_beside, others)) and not any(map(self._is_tensor, settings))

    def _seeds_before(self, call: cst.Call) -> bool:
        """Whether the function around a call seeds, so that it draws the same wherever it runs."""
        function = self._evaluator.definitions.enclosing_function(call) or self._tree.module
        return any(identifier(each.func) in _SEEDS for each in self._tree.below(function, cst.Call))

    def _is_setting(self, argument: cst.Arg) -> bool:
        """Whether an argument is named for what no tensor is: ``dim=axis``."""
        return argument.keyword is not None and argument.keyword.value in _SETTINGS

    def _is_tensor(self, value: cst.BaseExpression) -> bool:
        return self._evaluator.value(value).is_tensor

    def _may_be_beside(self, other: cst.BaseExpression) -> bool:
        """Whether something is known to be no tensor, or is one that is on the host for the same reason."""
        value = self._evaluator.value(other)
        is_plain = value.known and not value.is_tensor and value.kind is not Kind.BATCH
        return is_plain or literal(other) is not None or is_none(other) or self._is_copy(other)

    def _is_copy(self, tensor: cst.BaseExpression, depth: int = _DEPTH) -> bool:
        """Whether a tensor is made of a copy to the host, or there, in the same function."""
        if isinstance(tensor, cst.Name):
            found = self._evaluator.flow.definitions(tensor) if depth else []
            made = [b.value for b in found if b.kind is BindingKind.ASSIGNMENT and b.value is not None]
            return bool(found) and len(made) == len(found) and all(self._is_copy(each, depth - 1) for each in made)
        if isinstance(tensor, (cst.Subscript, cst.Attribute)):
            return self._is_copy(tensor.value, depth)
        if isinstance(tensor, cst.BinaryOperation):
            return self._is_copy(tensor.left, depth) or self._is_copy(tensor.right, depth)
        if not isinstance(tensor, cst.Call):
            return False
        name = self._evaluator.names.qualified(tensor.func) or ""
        if name in SIZED_FACTORIES:
            return bind(tensor.args).absent("device")
        if name.rpartition(".")[0] in _MODULES:
            return bool(tensor.args) and self._is_copy(tensor.args[0].value, depth)
        method = tensor.func if isinstance(tensor.func, cst.Attribute) else None
        is_moved = method is not None and method.attr.value in ("cpu", "to", "cuda", *OTHER_DEVICES)
        if is_moved and self._evaluator.value(tensor).device is Device.CPU:
            return True
        return method is not None and not is_moved and self._is_copy(method.value, depth)


def _operands(operation: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield what an arithmetic operation computes with."""
    if isinstance(operation, cst.BinaryOperation):
        yield from (operation.left, operation.right)
    elif isinstance(operation, cst.Comparison):
        yield operation.left
        yield from (target.comparator for target in operation.comparisons)
