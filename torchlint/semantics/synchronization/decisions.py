"""What becomes of a value that the host reads: the next step of an environment, a size, the end of a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import targets as bound_names
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.synchronization.host_detours import HostDetours
from torchlint.semantics.synchronization.host_reasons import HostReasons
from torchlint.semantics.synchronization.torch_round_trips import TorchRoundTrips
from torchlint.semantics.values import Kind
from torchlint.syntax.assignments import pairs
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.tensors.moves import Moves

_SCHEDULER = re.compile(r"sched|plateau|warm|anneal|stop|(^|_)lrs?(_|$)", re.IGNORECASE)
_SIZED = frozenset(("view", "reshape", "expand", "repeat", "narrow", "new_zeros", "new_ones", "new_empty", "new_full"))
_COUNTING = frozenset(
    (*(f"torch.{name}" for name in "zeros ones empty rand randn arange eye".split()), "builtins.range")
)
_PASSING = frozenset(("builtins.int", "builtins.max", "builtins.min", "builtins.round"))
_RECEIVING = frozenset(("torch.distributed.broadcast", "torch.distributed.recv"))
_IDENTITY = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
_METADATA = frozenset(
    "shape size dim ndim numel nelement dtype device is_cuda requires_grad grad grad_fn is_leaf layout".split()
)
_OF_KIND = frozenset(
    ("builtins.isinstance", "builtins.len", "builtins.hasattr", "builtins.type", "builtins.id", "torch.is_tensor")
)


class Decisions:
    """Follows what is read to where it is used."""

    def __init__(self, evaluator: Evaluator, moves: Moves) -> None:
        self._evaluator = evaluator
        reasons = HostReasons(evaluator)
        self._detours = HostDetours(evaluator, moves, reasons)
        self._round_trips = TorchRoundTrips(evaluator, self._detours, reasons)

    def brought_back(self, copy: cst.Call) -> cst.Call | None:
        """Return the call that copies to a device again what the host made of a copy, None if there is none."""
        return self._detours.back(copy)

    def computed_by_torch(self, copy: cst.Call) -> cst.Call | None:
        """Return the same where nothing but torch computes with the copy, and all that comes of it goes back."""
        return self._round_trips.back(copy)

    def sizes(self, call: cst.Call) -> bool:
        """Return whether what a call reads is a size, at once or by a name of its own: a bound of a slice, a shape."""
        reads = self._evaluator.flow.named_reads(self._through(call))
        return self._is_size(call) or any(map(self._is_size, reads))

    def _is_size(self, node: cst.CSTNode) -> bool:
        tree, top = self._evaluator.tree, self._through(node)
        parent = tree.parent(top)
        if isinstance(parent, cst.Slice):
            return True
        while isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
            parent = tree.parent(parent)
        call = tree.parent(parent) if isinstance(parent, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        method = method_call(call, *_SIZED)
        return method is not None or self._evaluator.names.qualified(call.func) in _COUNTING

    def _through(self, node: cst.CSTNode) -> cst.CSTNode:
        """What arithmetic and conversions to whole numbers make of a node."""
        tree = self._evaluator.tree
        while True:
            parent = tree.parent(node)
            if isinstance(parent, cst.Arg):
                parent = tree.parent(parent)
                passes = isinstance(parent, cst.Call) and self._evaluator.names.qualified(parent.func) in _PASSING
            else:
                passes = isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation))
            if parent is None or not passes:
                return node
            node = parent

    def is_asked_before(self, tensor: cst.BaseExpression | None, node: cst.CSTNode) -> bool:
        """Return whether a test around a node has looked at the same tensor: ``if x.item() > 9: print(x.item())``."""
        if tensor is None:
            return False
        child = node
        for ancestor in self._evaluator.tree.ancestors(node):
            if isinstance(ancestor, (cst.For, cst.While, cst.FunctionDef)):
                return False
            if isinstance(ancestor, cst.If) and child is ancestor.body:
                parts = self._evaluator.tree.descendants(ancestor.test)
                return any(is_same(part, tensor) and self._looks_at(part) for part in parts)
            child = ancestor
        return False

    def _looks_at(self, part: cst.CSTNode) -> bool:
        """Whether a test needs the value of a part of it, not its shape, nor whether there is one."""
        parent = self._evaluator.tree.parent(part)
        if isinstance(parent, cst.Comparison):
            return not any(isinstance(target.operator, _IDENTITY) for target in parent.comparisons)
        if isinstance(parent, cst.Attribute):
            return parent.attr.value not in _METADATA
        call = self._evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        return not isinstance(call, cst.Call) or self._evaluator.names.qualified(call.func) not in _OF_KIND

    def is_asked_by_loop(self, node: cst.CSTNode, root: cst.CSTNode) -> bool:
        """Return whether a loop goes on by a value: in the test of a ``while``, before a ``break``, in a search.

        A ``while`` in the loop ``root`` that goes over the elements of a tensor only reads what that one computed.
        """
        child = node
        for ancestor in self._evaluator.tree.ancestors(node):
            if isinstance(ancestor, cst.While):
                inner = ancestor is not root and isinstance(root, LOOPS) and self._evaluator.tree.within(ancestor, root)
                return child is ancestor.test and not (inner and self._only_reads(ancestor, node))
            if isinstance(ancestor, cst.If) and child is ancestor.test:
                return (self._leaves(node) and not self._gives_result(ancestor)) or self._steers(ancestor)
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            child = ancestor
        return False

    def _only_reads(self, loop: cst.While, node: cst.CSTNode) -> bool:
        """Whether a loop binds none of the tensors in a part of its test anew."""
        tree, flow = self._evaluator.tree, self._evaluator.flow
        tensors = [name for name in tree.below(node, cst.Name) if self._evaluator.value(name).is_tensor]
        bound = (binding.node for name in tensors for binding in flow.definitions(name))
        return bool(tensors) and not any(tree.within(place, loop.body) for place in bound)

    def _steers(self, branch: cst.If) -> bool:
        """Whether a branch binds numbers from which the next pass of its loop starts: ``if f(mid) > 0: hi = mid``."""
        tree = self._evaluator.tree
        loop = tree.enclosing(branch, cst.For, cst.While, cst.FunctionDef)
        if not isinstance(loop, (cst.For, cst.While)):
            return False
        assigned = [s for s in tree.below(branch.body, cst.Assign) if not tree.below(s.value, cst.Call)]
        bound = [statement.targets[0].target for statement in assigned]
        numbers = {t.value for t in bound if isinstance(t, cst.Name) and not self._evaluator.value(t).is_tensor}
        before = (name for name in tree.below(loop, cst.Name) if tree.order(name) < tree.order(branch))
        return any(name.value in numbers and not isinstance(tree.parent(name), cst.AssignTarget) for name in before)

    def _gives_result(self, branch: cst.If) -> bool:
        """Whether a branch hands the tensor of one pass to the loop in another function, which goes on with it."""
        around = self._evaluator.tree.enclosing(branch, cst.For, cst.While, cst.FunctionDef)
        last = branch.body.body[-1] if branch.body.body else None
        leaving = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        given = leaving.value if isinstance(leaving, cst.Return) else None
        return isinstance(around, cst.FunctionDef) and given is not None and self._evaluator.value(given).is_tensor

    def ends_loop(self, call: cst.Call) -> bool:
        """Return whether what a call reads came from another process, which so says whether the loop goes on."""
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(receiver, cst.Name) or not self._leaves(call):
            return False
        enclosing = self._evaluator.definitions.enclosing_function
        return any(
            other.args
            and isinstance(other.args[0].value, cst.Name)
            and other.args[0].value.value == receiver.value
            and self._evaluator.names.qualified(other.func) in _RECEIVING
            and enclosing(other) is enclosing(call)
            for other in self._evaluator.tree.nodes(cst.Call)
        )

    def _leaves(self, call: cst.CSTNode) -> bool:
        """Whether a node is in a test under which a loop or function is left."""
        for ancestor in self._evaluator.tree.ancestors(call):
            if isinstance(ancestor, cst.If):
                is_tested = self._evaluator.tree.within(call, ancestor.test)
                last = ancestor.body.body[-1] if ancestor.body.body else None
                leaving = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
                return is_tested and isinstance(leaving, (cst.Break, cst.Return))
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
        return False

    def decides(self, call: cst.Call) -> bool:
        """Return whether what a call reads goes to ``step`` of an environment or to a solver, or is another's word."""
        if self._steps_with(call) or self._is_acted_on(call) or self.ends_loop(call):
            return True
        function = self._evaluator.definitions.enclosing_function(call)
        if function is None or not self._is_returned(call, function):
            return False
        callers = self._evaluator.callers(function)
        acted_on = any(self._steps_with(caller) or self._is_acted_on(caller) for caller in callers)
        return acted_on or self._is_run_by_solver(function)

    def _is_run_by_solver(self, function: cst.FunctionDef) -> bool:
        """Whether a function is handed to SciPy, whose solvers compute on the host."""
        names = self._evaluator.names
        return any(
            isinstance(argument.value, cst.Name)
            and argument.value.value == function.name.value
            and self._evaluator.definitions.definition(argument.value) is function
            for call in self._evaluator.tree.nodes(cst.Call)
            if (names.qualified(call.func) or "").startswith("scipy.")
            for argument in call.args
        )

    def _is_returned(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a function returns what a call gives, at once or by a name of its own."""
        flow = self._evaluator.flow
        statement = flow.statement(call)
        if isinstance(statement, cst.Return):
            return True
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        returned = (node.value for node in self._evaluator.tree.below(function.body, cst.Return))
        return isinstance(target, cst.Name) and any(
            isinstance(value, cst.Name) and any(binding.node is target for binding in flow.definitions(value))
            for value in returned
        )

    def _is_acted_on(self, call: cst.Call) -> bool:
        """Whether a statement binds what a call gives to a name that is passed to ``step`` of an environment."""
        statement = self._evaluator.flow.statement(call)
        if not isinstance(statement, cst.Assign):
            return False
        targets = set(_stored(statement.targets[0].target))
        enclosing, tree = self._evaluator.definitions.enclosing_function, self._evaluator.tree
        function = enclosing(call)
        for other in tree.nodes(cst.Assign):  # what is made of it, one step further: `actions[step] = action[0]`
            if other is statement or enclosing(other) is not function:
                continue
            for target, given in pairs(other):
                read = given.value if isinstance(given, cst.Subscript) else None
                if isinstance(read, cst.Name) and read.value in {name.value for name in targets}:
                    targets.update(_stored(target))
        bound = {target.value for target in targets}
        return any(
            name.value in bound and name not in targets and enclosing(name) is function and self._steps_with(name)
            for name in tree.nodes(cst.Name)
        )

    def _steps_with(self, node: cst.CSTNode) -> bool:
        for ancestor in self._evaluator.tree.ancestors(node):
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            stepped = method_call(ancestor, "step")
            if stepped is not None and ancestor is not node:
                if _SCHEDULER.search(identifier(stepped.value)):
                    return False
                kind = self._evaluator.value(stepped.value).kind
                return kind not in (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)
        return False


def _stored(target: cst.BaseExpression) -> Iterator[cst.Name]:
    """Yield the names that an assignment binds, and those of what it stores into: ``actions`` in ``actions[i] = x``."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _stored(element.value)
    elif isinstance(target, cst.Subscript):
        yield from _stored(target.value)
    else:
        yield from (name for name, _ in bound_names(target))
