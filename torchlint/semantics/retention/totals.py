"""Totals and lists that a loop fills, and that nobody reads before the loop is over."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, last_statement
from torchlint.semantics.binding.scopes import FUNCTIONS, Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.like_terms import may_differ
from torchlint.semantics.synchronization.host_reads import ScalarRead
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import literal, method_call

_INTEGERS = frozenset(("torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool"))
_COUNTS = ("size", "numel", "nelement", "dim", "ndimension")
_SPIES = frozenset(("builtins.locals", "builtins.vars", "builtins.eval", "builtins.exec"))
_MAX_DEPTH = 6
_SWALLOWING = frozenset(("contextlib.suppress", "pytest.raises"))


class Accumulation(NamedTuple):
    """A local variable to which each pass of a loop adds one number."""

    name: str
    is_list: bool
    cast: str = ""
    """The method that gives the tensor a dtype in which a sum is that of the Python numbers: ``double``, ``long``."""

    total: str = ""
    """The built-in type of the total when the loop is over, "" where it depends on whether the loop ran."""


class Accumulations:
    """Finds the variable that a scalar read goes into, if the loop alone uses it until it ends."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._found: dict[tuple[cst.Call, cst.For], Accumulation | None] = {}

    def find(self, read: ScalarRead, loop: cst.For) -> Accumulation | None:
        """Return the accumulation that a read in the body of a loop feeds, None if anything about it is unclear."""
        if (read.call, loop) not in self._found:
            self._found[read.call, loop] = self._find(read, loop)
        return self._found[read.call, loop]

    def _find(self, read: ScalarRead, loop: cst.For) -> Accumulation | None:
        if loop.orelse is not None or loop.asynchronous is not None or self._is_compiled(loop):
            return None
        if read.tensor is None or (read.function and not self._is_builtin(read.function, loop)):
            return None
        parent = self._tree.parent(read.call)
        found = self._list(read, parent, loop) if isinstance(parent, cst.Arg) else self._total(read, loop)
        return found if found is None or self._is_builtin(found.total, loop) else None

    def _is_builtin(self, name: str, node: cst.CSTNode) -> bool:
        """Whether no scope around a node gives the name of a built-in another meaning."""
        return self._evaluator.scopes.deciding(name, self._evaluator.scopes.scope(node)) is None

    def _is_compiled(self, loop: cst.For) -> bool:
        """Whether TorchScript compiles the loop, where a variable has one type."""
        function = self._evaluator.definitions.enclosing_function(loop)
        names = (
            [self._evaluator.names.qualified(d.decorator) for d in function.decorators] if function is not None else []
        )
        return any(name is not None and name.startswith("torch.jit.") for name in names)

    # Totals

    def _total(self, read: ScalarRead, loop: cst.For) -> Accumulation | None:
        gives = number_type(read)
        statement = self._sum(read.call, gives)
        if statement is None or not isinstance(statement.target, cst.Name):
            return None
        feed = statement.target
        if not self._only_fed_by(feed, loop) or may_differ(read.tensor or read.call, loop, self._evaluator):
            return None
        starts = self._starts(feed)
        if gives == "int" and starts == {"int"}:
            return Accumulation(feed.value, False, "" if read.value.dtype == "torch.int64" else "long", "int")
        if not starts or (gives == "int" and starts != {"float"}):
            return None
        return Accumulation(feed.value, False, "double", "float" if starts == {"float"} else "")

    def _sum(self, read: cst.Call, gives: str | None) -> cst.AugAssign | None:
        """The ``total += read`` around a read; a float may be scaled by numbers on the way."""
        node: cst.CSTNode = read
        parent = self._tree.parent(node)
        while isinstance(parent, cst.BinaryOperation) and gives == "float":
            other = parent.right if parent.left is node else parent.left
            scales = isinstance(parent.operator, cst.Multiply) or (
                isinstance(parent.operator, cst.Divide) and parent.left is node
            )
            if not scales or not self._is_python_number(other):
                return None
            node, parent = parent, self._tree.parent(parent)
        is_sum = gives is not None and isinstance(parent, cst.AugAssign) and isinstance(parent.operator, cst.AddAssign)
        return parent if is_sum and isinstance(parent, cst.AugAssign) else None

    def _is_python_number(self, expression: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether an expression is certainly an int or a float, and no scalar of NumPy."""
        if self._evaluator.value(expression).kind is not Kind.NUMBER or depth > _MAX_DEPTH:
            return False
        if isinstance(expression, cst.BinaryOperation):
            return all(self._is_python_number(side, depth + 1) for side in (expression.left, expression.right))
        if isinstance(expression, cst.Name):
            bindings = self._evaluator.flow.definitions(expression)
            return all(self._binds_python_number(b, depth + 1) for b in bindings)
        if isinstance(expression, cst.Subscript):
            return isinstance(expression.value, cst.Attribute) and expression.value.attr.value == "shape"
        if method_call(expression, *_COUNTS) is not None:
            return True
        if isinstance(expression, cst.Call):
            return self._evaluator.names.qualified(expression.func) == "builtins.len"
        return literal(expression) is not None

    def _binds_python_number(self, binding: Binding, depth: int) -> bool:
        if binding.kind is BindingKind.PARAMETER:
            return True
        if binding.kind is not BindingKind.ASSIGNMENT or binding.value is None:
            return False
        if binding.path:
            shape = isinstance(binding.value, cst.Attribute) and binding.value.attr.value == "shape"
            return shape or method_call(binding.value, "size") is not None
        return self._is_python_number(binding.value, depth)

    def _starts(self, feed: cst.Name) -> set[str]:
        """The types of the numbers that the total can be before the loop; empty if it may be anything else."""
        types = set()
        for binding in self._evaluator.flow.definitions(feed):
            if binding.kind is BindingKind.AUGMENTED:
                if binding.node is not feed and not self._adds_number(binding):
                    return set()
                continue
            start = _start(binding)
            if start is None:
                return set()
            types.add(start)
        return types

    def _adds_number(self, binding: Binding) -> bool:
        return binding.value is not None and self._evaluator.value(binding.value).kind is Kind.NUMBER

    # Lists

    def _list(self, read: ScalarRead, argument: cst.Arg, loop: cst.For) -> Accumulation | None:
        call = self._tree.parent(argument)
        append = method_call(call, "append")
        if append is None or not isinstance(append.value, cst.Name) or not isinstance(call, cst.Call):
            return None
        if len(call.args) != 1 or not isinstance(self._tree.parent(call), cst.Expr):
            return None
        feed = append.value
        made = self._made_empty(feed)
        if made is None or not self._only_fed_by(feed, loop) or self._is_used_between(made, loop):
            return None
        outer = [a for a in self._tree.ancestors(loop) if isinstance(a, LOOPS)]
        if not all(self._tree.within(made, repeated.body) for repeated in outer):
            return None  # the second time it holds the numbers of the first
        return Accumulation(feed.value, True, total=read.function)

    def _made_empty(self, variable: cst.Name) -> cst.Name | None:
        """The target of the only assignment to a variable, if that is a new empty list which no other name has."""
        bindings = self._evaluator.scopes.bindings(variable)
        if len(bindings) != 1 or not isinstance(bindings[0].value, cst.List) or bindings[0].value.elements:
            return None
        target, statement = bindings[0].node, self._evaluator.flow.statement(bindings[0].node)
        if not isinstance(target, cst.Name) or not isinstance(statement, (cst.Assign, cst.AnnAssign)):
            return None
        return target if not isinstance(statement, cst.Assign) or len(statement.targets) == 1 else None

    def _is_used_between(self, made: cst.Name, loop: cst.For) -> bool:
        """Whether anybody can have got hold of a new list before the loop fills it."""
        start, end = self._tree.order(made), self._tree.order(loop)
        return end < start or any(start < self._tree.order(use) < end for use in self._uses(made))

    # Who sees the variable

    def _uses(self, name: cst.Name) -> list[cst.Name]:
        scopes = self._evaluator.scopes
        deciding = scopes.deciding(name.value, scopes.scope(name))
        same = self._tree.named(name.value)
        return [use for use in same if scopes.deciding(use.value, scopes.scope(use)) is deciding]

    def _only_fed_by(self, feed: cst.Name, loop: cst.For) -> bool:
        """Whether ``feed`` is the only use of a variable in a loop, and an error shows it to nobody."""
        frame = self._frame(loop)
        if not self._tree.within(feed, loop) or feed.value in self._evaluator.scopes.scope(feed).delegated:
            return False
        uses = self._uses(feed)
        if any(self._frame(use) is not frame or (use is not feed and self._tree.within(use, loop)) for use in uses):
            return False
        if any(self._outlives(block, uses, loop) for block in self._tree.ancestors(loop)):
            return False
        calls = (c for c in self._tree.nodes(cst.Call) if self._evaluator.names.qualified(c.func) in _SPIES)
        return not any(self._frame(call) is frame for call in calls)

    def _outlives(self, block: cst.CSTNode, uses: list[cst.Name], loop: cst.For) -> bool:
        """Whether a ``try`` or ``with`` catches an error in a loop, so that a use sees the total so far."""
        if isinstance(block, (cst.Try, cst.TryStar)) and self._tree.within(loop, block.body):
            ends = [*block.handlers, *([block.finalbody] if block.finalbody is not None else [])]
            if any(self._tree.within(use, end) for use in uses for end in ends):
                return True
            caught = any(not isinstance(last_statement(h.body), (cst.Raise, cst.Return)) for h in block.handlers)
        elif isinstance(block, cst.With):
            calls = [item.item for item in block.items if isinstance(item.item, cst.Call)]
            caught = any(self._evaluator.names.qualified(call.func) in _SWALLOWING for call in calls)
        else:
            return False
        return caught and any(not self._tree.within(use, block.body) and not self._is_stored(use) for use in uses)

    def _is_stored(self, use: cst.Name) -> bool:
        return any(b.node is use and b.kind is BindingKind.ASSIGNMENT for b in self._evaluator.scopes.bindings(use))

    def _frame(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return next((a for a in self._tree.ancestors(node) if isinstance(a, FUNCTIONS)), None)


def number_type(read: ScalarRead) -> str | None:
    """Return the type of the number that a read gives, None where it is not certain or not that of the tensor."""
    if read.function == "float":
        return "float"
    integer = is_integer(read.value)
    if integer is None or read.function == "bool":
        return None
    if read.function == "int":
        return "int" if integer else None  # of a float it cuts off the fraction
    return "int" if integer else "float"


def is_integer(tensor: Value) -> bool | None:
    """Return whether a tensor holds integers (True) or floats (False); None where neither is certain."""
    if tensor.dtype is not None:
        return None if tensor.dtype.startswith("torch.complex") else tensor.dtype in _INTEGERS
    return False if tensor.origin is Origin.LOSS else None


def _start(binding: Binding) -> str | None:
    """The type of the number that an assignment writes out, None if it is anything else."""
    if binding.kind is not BindingKind.ASSIGNMENT:
        return None
    start = literal(binding.part)
    return None if isinstance(start, (bool, str)) or start is None else type(start).__name__
