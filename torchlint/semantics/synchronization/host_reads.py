"""Where a tensor's value is brought to the host."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate import hints, unknown_calls
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.synchronization import bare_parameters
from torchlint.semantics.synchronization.scores import is_score
from torchlint.semantics.synchronization.walked_copies import is_walked
from torchlint.semantics.synchronization.written_out import WRITERS, writes_out
from torchlint.semantics.values import UNKNOWN, Device, Kind, Origin, Value, tensor
from torchlint.syntax.calls import bind, identifier, literal, method_call
from torchlint.syntax.canonical import canonical

_CONVERSIONS = frozenset(("builtins.float", "builtins.int", "builtins.bool", "builtins.range", "fairseq.utils.item"))
_PASSED_THROUGH = ("cpu", "detach", "clone", "squeeze", "view", "reshape", "contiguous")
_COPIES = ("cpu", "numpy", "tolist")
_ADDING = ("sum", "mean")
_REDUCING = ("sum", "mean", "max", "min", "norm")
_READERS = ("item", "get_scale", "state_dict", "add_scalar", "add_scalars", "step")
_LOGGERS = {"wandb.log": 0, "mlflow.log_metric": 1, "mlflow.log_metrics": 0}
"""Functions that make numbers of what they are told at once, and the position of that, or of a dictionary of it."""

READERS = frozenset(
    (
        *_READERS,
        *(name.rpartition(".")[2] for name in _LOGGERS),
        *_CONVERSIONS,
        *dir(math),
        *"cbrt exp2 sumprod fma".split(),
    )
)
"""The names of what reads a scalar, among them all functions of ``math``; the last came after Python 3.10."""

COPIERS = frozenset((*_COPIES, *WRITERS, "to"))
"""The names of what copies a tensor to the host."""

_PRIORITY = re.compile(r"(^|_)(new_?)?prio(s|rit\w*)?(_|$)", re.IGNORECASE)
_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
# What takes tensors on the host only: lengths of sequences, the priorities of a replay buffer.
_ON_HOST = frozenset(("pack_padded_sequence", "update_priorities", "search", "ctc_loss", "batch_decode"))


class ScalarRead(NamedTuple):
    """A call that turns a tensor of one element into a Python number."""

    call: cst.Call
    tensor: cst.BaseExpression | None
    """The tensor that is read, without a ``.detach().cpu()`` before the read; None if it is not visible."""

    value: Value
    function: str = ""
    """The built-in that reads it, or the function inside which that happens; "" for the method ``item``."""


class HostReads:
    """Finds the places where the host waits for a value."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def may_read(self, call: cst.Call) -> bool:
        """Return whether a call reads a scalar if it is given a tensor."""
        if method_call(call, *_READERS) is not None:
            return True
        name = self._qualified(call) if call.args else ""
        return name in _CONVERSIONS or name in _LOGGERS or name.startswith("math.")

    def scalar(self, call: cst.Call) -> ScalarRead | None:
        """Return the read that a call is: ``x.item()``, ``float(x)``, or a function in which it happens."""
        read = self._read_expression(call)
        if read is None:
            return self._hidden(call)
        source = read
        while True:
            inner = method_call(source, *_PASSED_THROUGH)
            if inner is not None:
                source = inner.value
            elif isinstance(source, cst.Attribute) and source.attr.value == "data":
                source = source.value
            elif (given := self._handed_back(source)) is not None:
                source = given
            else:
                break
        value = self._evaluator.value(source)
        is_method = method_call(call, "item") is not None and not call.args
        function = "" if is_method else self._qualified(call).rpartition(".")[2]
        may_be_number = function == "range" or (function == "item" and isinstance(source, cst.Subscript))
        is_weak = may_be_number and value.evidence < Evidence.INFERRED
        is_weak = is_weak or (bool(function) and bare_parameters.may_be_number(source, self._evaluator))
        if is_weak or (not value.is_tensor and value.kind is not Kind.BATCH):
            reduced = method_call(source, *_REDUCING) if function else None
            origin = reduced.value if reduced is not None else source
            if value.known or (function and reduced is None) or not self._comes_from_tensor(origin):
                return None
            value = tensor(Evidence.NAMED)
        if value.origin is Origin.LOSS and not function and unknown_calls.is_computed(source, self._evaluator):
            value = value._replace(evidence=max(value.evidence, Evidence.INFERRED))
        return ScalarRead(call, source, value, function)

    def _handed_back(self, call: cst.BaseExpression) -> cst.BaseExpression | None:
        """The argument of a function of the file that only brings it to the host: ``to_cpu(loss)``."""
        function = self._evaluator.definitions.definition(call.func) if isinstance(call, cst.Call) else None
        if not isinstance(call, cst.Call) or not isinstance(function, cst.FunctionDef) or len(call.args) != 1:
            return None
        results, given = self._evaluator.definitions.results(function), parameters(function)
        if isinstance(call.func, cst.Attribute) and self._evaluator.definitions.owner(function) is not None:
            given = given[1:]  # `self.to_cpu(loss)`
        source = results[0] if len(results) == len(given) == 1 else None
        while (inner := method_call(source, *_PASSED_THROUGH)) is not None:
            source = inner.value
        is_parameter = isinstance(source, cst.Name) and source.value == given[0].name.value
        return call.args[0].value if is_parameter and source is not results[0] else None

    def what_is_read(self, call: cst.Call) -> tuple[str, frozenset[int]]:
        """Return what tells a read from others: its text, and where the variables in it got their values."""
        names = self._evaluator.tree.below(call, cst.Name)
        bound = (binding for name in names for binding in self._evaluator.flow.definitions(name))
        return canonical(call), frozenset(id(binding.node) for binding in bound)

    def _comes_from_tensor(self, source: cst.BaseExpression) -> bool:
        if unknown_calls.from_tensor(source, self._evaluator) or unknown_calls.is_diffusion_time(
            source, self._evaluator
        ):
            return True
        entry = source.slice[0].slice if isinstance(source, cst.Subscript) else None  # `outputs["loss"]` in a callback
        key = literal(entry.value) if isinstance(entry, cst.Index) else None
        return isinstance(key, str) and hints.named(key).origin is Origin.LOSS

    def was_read(self, variable: cst.BaseExpression) -> bool:
        """Return whether a variable holds a number that was read from a tensor."""
        bindings = self._evaluator.flow.definitions(variable) if isinstance(variable, cst.Name) else ()
        parts = [binding.part for binding in bindings]
        return any(isinstance(part, cst.Call) and self.scalar(part) is not None for part in parts)

    def _hidden(self, call: cst.Call) -> ScalarRead | None:
        """The read inside ``scaler.get_scale()``, ``math.sqrt(x)``, ``writer.add_scalar(tag, x)`` or a logger."""
        method = method_call(call, "get_scale", "state_dict", "add_scalar", "add_scalars", "step")
        if method is None:
            name = self._qualified(call)
            return self._given(call, _LOGGERS.get(name, 0)) if name in _LOGGERS or name.startswith("math.") else None
        if method.attr.value in ("add_scalar", "add_scalars"):
            return self._given(call, 1, "scalar_value")
        owner = self._evaluator.value(method.value)
        if method.attr.value == "step":
            return self._given(call, 0, "metrics") if owner.name == _PLATEAU else None
        asks = method.attr.value == "get_scale" or isinstance(self._evaluator.tree.parent(call), cst.Subscript)
        if owner.kind is not Kind.SCALER or call.args or not asks:
            return None
        return ScalarRead(call, None, tensor(owner.evidence, Device.ACCELERATOR), method.attr.value)

    def _given(self, call: cst.Call, position: int, keyword: str = "") -> ScalarRead | None:
        """The read of the argument at a position, if that is certainly a tensor."""
        for index, argument in enumerate(call.args):
            if argument.star:
                return None
            if argument.keyword.value == keyword if argument.keyword is not None else index == position:
                values = (self._certain(given) for given in _told(argument.value))
                found = next((value for value in values if value.is_tensor), None)
                return ScalarRead(call, None, found, identifier(call.func)) if found is not None else None
        return None

    def _certain(self, expression: cst.BaseExpression) -> Value:
        """What an expression is for certain."""
        value = self._evaluator.value(expression)
        if value.origin is Origin.LOSS and unknown_calls.is_computed(expression, self._evaluator):
            value = value._replace(evidence=max(value.evidence, Evidence.INFERRED))
        return value if value.evidence >= Evidence.INFERRED else UNKNOWN

    def _qualified(self, call: cst.Call) -> str:
        return self._evaluator.names.qualified(call.func) or ""

    def _read_expression(self, call: cst.Call) -> cst.BaseExpression | None:
        method = method_call(call, "item")
        if method is not None and not call.args:
            return method.value
        if len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
            return None
        return call.args[0].value if self._qualified(call) in _CONVERSIONS else None

    def may_copy(self, call: cst.Call) -> bool:
        """Return whether a call copies to the host if it is given a tensor on an accelerator."""
        return method_call(call, *_COPIES, "to") is not None or self.shows(call)

    def copied(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return the tensor that ``x.cpu()``, ``x.numpy()``, ``x.tolist()`` or ``print(x)`` brings to the host.

        Of a chain such as ``x.detach().cpu().numpy()`` only the last call counts.
        """
        if self.shows(call):
            return self._first_tensor([a.value for a in call.args if not a.star])
        method = self._copy(call)
        if method is None or self._is_copied_further(call):
            return None
        source = method.value
        while (inner := self._copy(source) or method_call(source, *_PASSED_THROUGH)) is not None:
            source = inner.value
        return source

    def is_certainly_tensor(self, copied: cst.BaseExpression) -> bool:
        """Return whether what is copied holds a tensor: by the flow of values, or by methods that only tensors have."""
        value = self._evaluator.value(copied)
        if value.is_tensor and value.evidence >= Evidence.INFERRED:
            return True
        if value.known and not value.is_tensor:
            return False
        if self._followed_by(copied, "detach") is not None:
            return True
        moved = self._followed_by(copied, "cpu")  # which lists of boxes have as well
        if moved is None or self._followed_by(moved, "numpy", "detach") is None:
            return moved is not None and unknown_calls.is_brought_back(moved, self._evaluator)
        return not self._is_item_of_loop(copied)

    def _is_item_of_loop(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is what a loop binds, or a part of it, which may be on the host already."""
        while isinstance(expression, (cst.Subscript, cst.Attribute)):
            expression = expression.value
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        return any(binding.kind is BindingKind.ITERATION for binding in bindings)

    def _followed_by(self, expression: cst.BaseExpression, *names: str) -> cst.Call | None:
        """The call of one of these methods of an expression."""
        method = self._evaluator.tree.parent(expression)
        call = self._evaluator.tree.parent(method) if isinstance(method, cst.Attribute) else None
        is_called = isinstance(call, cst.Call) and call.func is method and method_call(call, *names) is not None
        return call if is_called and isinstance(call, cst.Call) else None

    def _copy(self, node: cst.CSTNode | None) -> cst.Attribute | None:
        """The ``x.cpu``, ``x.numpy``, ``x.tolist`` or ``x.to`` of a call that copies to the host."""
        method = method_call(node, *_COPIES, "to")
        if method is None or not isinstance(node, cst.Call) or method.attr.value != "to":
            return method
        where = node.args[0].value if node.args else None
        literals = (literal(where), self._evaluator.value(where).literal) if where is not None else ()
        waits = literal(bind(node.args).get("non_blocking")) is not True
        return method if "cpu" in literals and waits else None

    def formatted(self, node: cst.FormattedStringExpression | cst.BinaryOperation) -> cst.BaseExpression | None:
        """Return the tensor whose value ``f"{x}"`` or ``"%s" % x`` writes out."""
        if isinstance(node, cst.FormattedStringExpression):
            return self._first_tensor([node.expression])
        if not isinstance(node.operator, cst.Modulo) or not isinstance(node.left, cst.BaseString):
            return None
        right = node.right
        given = [element.value for element in right.elements] if isinstance(right, cst.Tuple) else [right]
        return self._first_tensor(given)

    def _first_tensor(self, expressions: list[cst.BaseExpression]) -> cst.BaseExpression | None:
        values = ((e, self._evaluator.value(e)) for e in expressions)  # an entry of a batch may be a list of texts
        return next((e for e, value in values if value.is_tensor and value.origin is not Origin.BATCH), None)

    def late_detach(self, call: cst.Call) -> tuple[cst.Attribute, cst.Attribute] | None:
        """Return the two methods of ``x.cpu().detach()`` in the chain of calls that ends in a copy, the last first."""
        tree = self._evaluator.tree
        around = tree.parent(tree.parent(call) or call)
        node: cst.CSTNode | None = around if method_call(around, "detach") is not None else call
        while (method := method_call(node, *_COPIES, *_PASSED_THROUGH)) is not None:
            inner = method_call(method.value, "cpu")
            bare = (
                isinstance(node, cst.Call)
                and isinstance(method.value, cst.Call)
                and not (node.args or method.value.args)
            )
            if method.attr.value == "detach" and inner is not None and bare:
                return method, inner
            node = method.value
        return None

    def _is_copied_further(self, call: cst.Call) -> bool:
        outer = self._chain_end(call)
        return self._copy(outer) is not None

    def _chain_end(self, call: cst.Call) -> cst.CSTNode:
        """The next call of a copying method on the result of a call, or the call itself."""
        node: cst.CSTNode = call
        found: cst.CSTNode = cst.Pass()
        tree = self._evaluator.tree
        while isinstance(tree.parent(node), cst.Attribute) and isinstance(
            tree.parent(tree.parent(node) or node), cst.Call
        ):
            outer = tree.parent(tree.parent(node) or node)
            if outer is None or not (self._copy(outer) or method_call(outer, *_PASSED_THROUGH, "item")):
                break
            node = outer
            if self._copy(outer) or method_call(outer, "item"):
                found = outer
        return found

    def is_read_as_number(self, call: cst.Call) -> bool:
        """Return whether a copy is only made to read one number from it."""
        if method_call(self._chain_end(call), "item") is not None:
            return True
        parent = self._evaluator.tree.parent(call)
        around = self._evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        read = self.scalar(around) if isinstance(around, cst.Call) else None
        return read is not None and read.value.device is not Device.CPU  # what lies there TL202 has nothing to say of

    def shows(self, call: cst.Call) -> bool:
        """Return whether a call writes out what it is given: ``print(x)``, ``"{}".format(x)``."""
        return writes_out(call, self._evaluator)

    def is_added_up_there(self, call: cst.Call) -> bool:
        """Return whether a copy is only added up to one number: ``x.cpu().sum()``, ``(x.cpu() == y.cpu()).sum()``."""
        added: cst.BaseExpression = call
        around = self._evaluator.tree.parent(call)
        if isinstance(around, cst.Comparison):  # of which the copy is the left side: it speaks for the others
            if any(self._copy(target.comparator) is None for target in around.comparisons):
                return False
            added = around
        total = self._followed_by(added, *_ADDING)
        return total is not None and not total.args

    def copies_rows(self, copied: cst.BaseExpression, root: cst.CSTNode) -> bool:
        """Return whether a loop below ``root`` copies a tensor row by row: ``for i in range(n): x[i].tolist()``."""
        tree = self._evaluator.tree
        loop = tree.enclosing(copied, cst.For)
        if loop is None or loop is root or not tree.within(loop, root) or not isinstance(loop.target, cst.Name):
            return False
        if not isinstance(copied, cst.Subscript) or not isinstance(copied.value, cst.Name) or len(copied.slice) > 1:
            return False
        index = copied.slice[0].slice
        place = index.value if isinstance(index, cst.Index) else None
        bindings = self._evaluator.flow.definitions(copied.value)
        is_kept = bool(bindings) and not any(tree.within(b.node, loop) for b in bindings)
        return is_kept and isinstance(place, cst.Name) and place.value == loop.target.value

    def is_kept(self, call: cst.Call) -> bool:
        """Return whether an object keeps a copy for later, on the host: ``self.cache = x[:, -1:].clone().cpu()``."""
        line = self._evaluator.tree.parent(call)
        if not isinstance(line, cst.Assign) or method_call(call, "cpu", "to") is None or len(line.targets) != 1:
            return False
        target = line.targets[0].target
        owner = target.value if isinstance(target, cst.Attribute) else None
        return isinstance(owner, cst.Name) and self._evaluator.definitions.receiver(owner) is not None

    def is_walked(self, call: cst.Call) -> bool:
        """Return whether Python goes over the values that a call copies, or cuts tensors by them."""
        return is_walked(call, self._evaluator)

    def needs_host(self, call: cst.Call) -> bool:
        """Return whether a copy only goes into a function that takes it on the host, also by a name of its own."""
        users = self._users(call)
        return self._goes_to_host(call) or (bool(users) and all(map(self._goes_to_host, users)))

    def _goes_to_host(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is an argument of a function that keeps it on the host."""
        for ancestor in self._evaluator.tree.ancestors(node):
            if isinstance(ancestor, cst.Call):
                name = self._evaluator.names.qualified(ancestor.func) or identifier(ancestor.func)
                if name.rpartition(".")[2] in _ON_HOST:
                    return True
            if isinstance(ancestor, cst.BaseSmallStatement):
                targets = ancestor.targets if isinstance(ancestor, cst.Assign) else ()
                return any(_PRIORITY.search(identifier(target.target)) for target in targets)  # of a replay buffer
        return False

    def _users(self, call: cst.Call) -> list[cst.Name]:
        """Where the function reads the variable into which a call is put."""
        enclosing = self._evaluator.definitions.enclosing_function
        statement = self._evaluator.flow.statement(call)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Name):
            return []
        same = self._evaluator.tree.named(target.value)
        return [name for name in same if name is not target and enclosing(name) is enclosing(call)]

    def may_choose(self, read: ScalarRead) -> bool:
        """Return whether what is read may be a choice of the program, such as the next token: no loss, no score."""
        if read.tensor is not None and is_score(read.tensor, read.call, self._evaluator):
            return False
        return read.value.origin is not Origin.LOSS and not self.is_added_up(read.call)

    def is_added_up(self, call: cst.Call) -> bool:
        """Return whether what a call reads only goes into a total, at once or by a name of its own."""
        if isinstance(self._evaluator.flow.statement(call), cst.AugAssign):
            return True
        users = self._users(call)
        added = (self._evaluator.flow.statement(user) for user in users)
        return bool(users) and all(
            isinstance(each, cst.AugAssign) and identifier(each.target) != user.value
            for each, user in zip(added, users, strict=True)
        )


def _told(given: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """The values of a dictionary that is written out; anything else itself."""
    if not isinstance(given, cst.Dict):
        return (given,)
    return tuple(element.value for element in given.elements if isinstance(element, cst.DictElement))
