"""Operators: arithmetic, comparisons, Boolean operations, conditional expressions, lambdas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import OF_ARRAYS
from torchlint.semantics.values import NUMBER, STRING, UNKNOWN, Device, Graph, Kind, Origin, Value, join, of, tensor
from torchlint.syntax.calls import identifier, is_none
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator


def evaluate(expression: cst.CSTNode, evaluator: Evaluator) -> Value:
    """Return the value of an operation."""
    if isinstance(expression, cst.BinaryOperation):
        return _binary(expression, evaluator)
    if isinstance(expression, cst.UnaryOperation):
        operand = evaluator.value(expression.expression)
        return NUMBER if isinstance(expression.operator, cst.Not) else operand._replace(literal=None)
    if isinstance(expression, cst.Comparison):
        return _comparison(expression, evaluator)
    if isinstance(expression, cst.BooleanOperation):
        found = _boolean(evaluator.value(expression.left), evaluator.value(expression.right))
        is_or = isinstance(expression.operator, cst.Or)
        return (_default(expression.left, expression.right, evaluator) if is_or else None) or found
    if isinstance(expression, cst.IfExp):
        return _conditional(expression, evaluator)
    if isinstance(expression, cst.Lambda):
        return Value(Kind.FUNCTION)
    return UNKNOWN


def combined(values: list[Value]) -> Value:
    """Return the tensor that an operation on these operands gives; UNKNOWN if none is a tensor."""
    tensors = [v for v in values if v.is_tensor or v.kind is Kind.BATCH]
    if not tensors:
        return next((v for v in values if v.kind is Kind.PENDING), UNKNOWN)
    devices = {v.device for v in tensors if v.device is not Device.UNKNOWN}
    certain = len(devices) == 1 and (devices != {Device.CPU} or all(v.device is Device.CPU for v in tensors))
    graphs = {v.graph for v in tensors}
    others_known = all(
        v.is_tensor or v.kind in (Kind.NUMBER, Kind.NONE, Kind.STRING, Kind.DTYPE, Kind.DEVICE) for v in values
    )
    graph = Graph.UNKNOWN
    if Graph.ATTACHED in graphs:
        graph = Graph.ATTACHED
    elif graphs == {Graph.DETACHED} and others_known:
        graph = Graph.DETACHED
    losses = any(v.origin is Origin.LOSS for v in tensors)
    return tensor(
        _certainty(tensors),
        device=devices.pop() if certain else Device.UNKNOWN,
        graph=graph,
        origin=Origin.LOSS if losses else Origin.UNKNOWN,
    )


def _certainty(tensors: list[Value]) -> Evidence:
    """An operand that is a tensor makes the result one, whatever the others are."""
    least, most = min(v.evidence for v in tensors), max(v.evidence for v in tensors)
    return max(least, min(most, Evidence.INFERRED))


def _binary(expression: cst.BinaryOperation, evaluator: Evaluator) -> Value:
    left, right = evaluator.value(expression.left), evaluator.value(expression.right)
    if left.kind is Kind.STRING:
        return STRING
    if right.kind is Kind.SEQUENCE and _is_lengthened(expression, evaluator):
        return _lengthened(right)
    found = combined([left, right])
    if found.known or found.kind is Kind.PENDING:
        return found
    if Kind.NDARRAY in (left.kind, right.kind):
        return Value(Kind.NDARRAY, min(v.evidence for v in (left, right) if v.kind is Kind.NDARRAY))
    if left.kind is Kind.NUMBER and right.kind is Kind.NUMBER:
        return NUMBER.weakened(min(left.evidence, right.evidence))
    if left.kind is right.kind is Kind.SEQUENCE:
        items = [v.iterated() for v in (left, right) if v.elements != ()]
        return of(Kind.SEQUENCE, join(items)) if items and join(items).known else Value(Kind.SEQUENCE)
    return UNKNOWN


def _is_lengthened(expression: cst.BinaryOperation, evaluator: Evaluator) -> bool:
    """Whether a list is made of itself and some more items: ``items = items + [more]``."""
    statement = evaluator.tree.parent(expression)
    return (
        isinstance(statement, cst.Assign)
        and isinstance(expression.operator, cst.Add)
        and any(is_same(target.target, expression.left) for target in statement.targets)
    )


def _lengthened(part: Value) -> Value:
    items = part.iterated() if part.elements != () else UNKNOWN
    return of(Kind.SEQUENCE, items) if items.known else Value(Kind.SEQUENCE)


def _comparison(expression: cst.Comparison, evaluator: Evaluator) -> Value:
    targets = expression.comparisons
    if any(isinstance(t.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for t in targets):
        return NUMBER
    values = [evaluator.value(expression.left), *(evaluator.value(t.comparator) for t in targets)]
    found = combined(values) if all(v.kind is not Kind.DEVICE for v in values) else NUMBER  # a tensor is no device
    if found.known and found.kind is not Kind.NUMBER:
        mask = found._replace(graph=Graph.DETACHED, origin=Origin.UNKNOWN, dtype="torch.bool")
        return mask.borne_out() if _is_used_as_array(expression, evaluator) else mask
    if any(v.kind is Kind.NDARRAY for v in values):
        return Value(Kind.NDARRAY)
    with_text = len(values) == 2 and Kind.STRING in (values[0].kind, values[1].kind) and _is_device(expression.left)
    return NUMBER if with_text or all(v.kind in (Kind.NUMBER, Kind.STRING, Kind.NONE) for v in values) else UNKNOWN


def _is_used_as_array(comparison: cst.Comparison, evaluator: Evaluator) -> bool:
    """Whether a method of arrays is called on the result, which no comparison of numbers has: ``(a >= 0).sum()``."""
    parent = evaluator.tree.parent(comparison)
    return isinstance(parent, cst.Attribute) and parent.attr.value in OF_ARRAYS


def _is_device(expression: cst.BaseExpression) -> bool:
    """Whether an expression is the kind of a device: ``x.device.type``."""
    if not isinstance(expression, cst.Attribute) or expression.attr.value != "type":
        return False
    owner = expression.value
    return isinstance(owner, (cst.Name, cst.Attribute)) and identifier(owner) == "device"


def _boolean(left: Value, right: Value) -> Value:
    """What ``a or b`` gives: a test of a tensor that only some condition spares."""
    if left.kind is Kind.NUMBER and right.is_tensor and right.dtype == "torch.bool":
        return right
    return join([left, right])


def _default(given: cst.BaseExpression, made: cst.BaseExpression, evaluator: Evaluator) -> Value | None:
    """What ``given or Meter()`` gives: an argument may be anything, but what stands in for it is of its kind."""
    own = evaluator.value(made)
    if own.kind is not Kind.INSTANCE or not isinstance(given, cst.Name) or evaluator.value(given).known:
        return None
    is_argument = [binding.kind is BindingKind.PARAMETER for binding in evaluator.flow.definitions(given)]
    return own.weakened(Evidence.INFERRED) if is_argument == [True] else None


def _stands_in(expression: cst.IfExp, evaluator: Evaluator) -> Value | None:
    """What ``meter if meter is not None else Meter()`` gives."""
    test = expression.test.comparisons[0] if isinstance(expression.test, cst.Comparison) else None
    if test is None or not isinstance(expression.test, cst.Comparison) or not is_none(test.comparator):
        return None
    is_given = isinstance(test.operator, (cst.IsNot, cst.NotEqual))
    given, made = (expression.body, expression.orelse)[:: 1 if is_given else -1]
    return _default(given, made, evaluator) if is_same(expression.test.left, given) else None


def _conditional(expression: cst.IfExp, evaluator: Evaluator) -> Value:
    found = join([evaluator.value(expression.body), evaluator.value(expression.orelse)])
    if not found.known:
        found = _stands_in(expression, evaluator) or found
    if found.kind is Kind.STRING and found.literal is None:
        named = {evaluator.value(e).literal for e in (expression.body, expression.orelse)}
        if any(isinstance(n, str) and n.startswith(("cuda", "mps", "xpu")) for n in named) and "cpu" in named:
            return Value(Kind.DEVICE, found.evidence, device=Device.EITHER)
    return found
