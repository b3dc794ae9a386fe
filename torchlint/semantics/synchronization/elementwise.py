"""Loops that compute with one element of a tensor in each pass, and that one call on the whole tensor replaces."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DTYPE_CASTS
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.canonical import canonical, is_same

# What gives one result for each row, if it is told so.
_REDUCTIONS = ("sum", "mean", "norm", "prod", "max", "min", "std", "var", "any", "all", "argmax", "argmin")
# What gives for a whole tensor the results that it gives for each of its elements, as function and as method.
_ELEMENTWISE = frozenset(
    (
        "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square pow sin cos tan asin acos atan atan2 sinh cosh "
        "tanh sigmoid relu clamp clip round floor ceil trunc sign add sub mul div true_divide floor_divide remainder "
        "fmod maximum minimum where eq ne lt le gt ge logical_and logical_or logical_not isnan isinf isfinite erf "
        "reciprocal lerp detach clone leaky_relu softplus gelu silu elu"
    ).split()
) | frozenset(DTYPE_CASTS)


class Elements(NamedTuple):
    """A loop over the elements of a tensor."""

    tensor: cst.BaseExpression
    result: cst.BaseExpression
    """What the loop fills, adds up or appends to."""

    adds: bool
    """Whether it adds the elements up."""


class Elementwise:
    """Recognises such loops."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree

    def find(self, loop: cst.For) -> Elements | None:
        """Return the loop over elements that a ``for`` is, None if a pass does anything else."""
        statement = _only(loop.body)
        if statement is None or not isinstance(loop.target, cst.Name):
            return None
        tensor, counter = self._iterated(loop)
        if tensor is None:
            return None
        element = loop.target.value
        stored = self._stored(statement, element, counter)
        if stored is None:
            return None
        result, value, adds = stored
        reduced = method_call(value, *_REDUCTIONS)
        if reduced is not None and isinstance(value, cst.Call) and not value.args:
            value = reduced.value
        elif not self._computes(value):
            return None
        if not self._is_elementwise(value, element, counter, result, adds):
            return None
        if not any(self._is_element(node, element, counter, tensor) for node in self._tree.descendants(value)):
            return None
        return Elements(tensor, result, adds)

    def _iterated(self, loop: cst.For) -> tuple[cst.BaseExpression | None, bool]:
        """The tensor whose elements a loop takes, and whether it counts them."""
        source = loop.iter
        if not isinstance(source, cst.Call):
            return (source if self._is_tensor(source) else None), False
        if self._evaluator.names.qualified(source.func) != "builtins.range" or len(source.args) != 1:
            return None, False
        size = source.args[0].value
        if isinstance(size, cst.Call) and self._evaluator.names.qualified(size.func) == "builtins.len":
            owner = size.args[0].value if len(size.args) == 1 else None
            return (owner if owner is not None and self._is_tensor(owner) else None), True
        method = method_call(size, "size")
        if method is not None and isinstance(size, cst.Call) and _is_zero([a.value for a in size.args]):
            return self._shaped(method.value), True
        if isinstance(size, cst.Subscript) and isinstance(size.value, cst.Attribute):
            index = size.slice[0].slice
            if size.value.attr.value == "shape" and isinstance(index, cst.Index) and _is_zero([index.value]):
                return self._shaped(size.value.value), True
        return None, True

    def _shaped(self, owner: cst.BaseExpression) -> cst.BaseExpression | None:
        """A tensor that is asked for its shape: no list then."""
        value = self._evaluator.value(owner)
        return owner if value.is_tensor and value.device is not Device.CPU else None

    def _is_tensor(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is a tensor because it was computed, not because it is called or annotated so."""
        value = self._evaluator.value(expression)
        if not value.is_tensor or value.evidence < Evidence.INFERRED or value.device is Device.CPU:
            return False
        if not isinstance(expression, cst.Name):
            return False
        bindings = self._evaluator.flow.definitions(expression)
        return bool(bindings) and all(
            b.kind is BindingKind.ASSIGNMENT and not b.path and isinstance(b.value, (cst.BinaryOperation, cst.Call))
            for b in bindings
        )

    def _stored(
        self, statement: cst.CSTNode, element: str, counter: bool
    ) -> tuple[cst.BaseExpression, cst.BaseExpression, bool] | None:
        """What a pass fills, adds to or appends to, and with what: ``out[i] = x``, ``out[i] += x``, ``total += x``."""
        appended = method_call(statement.value, "append") if isinstance(statement, cst.Expr) else None
        if appended is not None and isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            given = statement.value.args
            return (appended.value, given[0].value, False) if len(given) == 1 and not given[0].star else None
        if isinstance(statement, cst.AugAssign):
            if isinstance(statement.target, cst.Name):
                return (statement.target, statement.value, True) if _adds(statement) else None
            target = statement.target
        elif isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target = statement.targets[0].target
        else:
            return None
        if not counter or not isinstance(target, cst.Subscript) or not _is_at(target, element):
            return None
        owner = self._evaluator.value(target.value)
        return (target.value, statement.value, False) if owner.is_tensor else None

    def _computes(self, value: cst.BaseExpression) -> bool:
        """Whether a pass computes anything, or only copies."""
        return isinstance(value, (cst.BinaryOperation, cst.Call, cst.UnaryOperation, cst.Comparison))

    def _is_element(self, node: cst.CSTNode, element: str, counter: bool, tensor: cst.BaseExpression) -> bool:
        if not counter:
            return isinstance(node, cst.Name) and node.value == element
        return isinstance(node, cst.Subscript) and _is_at(node, element) and is_same(node.value, tensor)

    def _is_elementwise(
        self, value: cst.BaseExpression, element: str, counter: bool, result: cst.BaseExpression, adds: bool
    ) -> bool:
        """Whether nothing but elements at the same place and things that stay the same go into a value."""
        if isinstance(value, cst.BinaryOperation):
            if isinstance(value.operator, (cst.MatrixMultiply, cst.BitOr, cst.BitAnd)):
                return False
            return all(self._is_elementwise(s, element, counter, result, adds) for s in (value.left, value.right))
        if isinstance(value, cst.UnaryOperation) and not isinstance(value.operator, cst.Not):
            return self._is_elementwise(value.expression, element, counter, result, adds)
        if isinstance(value, cst.Subscript):
            is_result = canonical(value.value) == canonical(result) and adds
            return counter and _is_at(value, element) and self._evaluator.value(value.value).is_tensor and not is_result
        if isinstance(value, cst.Call):
            return self._is_elementwise_call(value, element, counter, result, adds)
        if isinstance(value, (cst.Name, cst.Attribute)):
            if isinstance(value, cst.Name) and value.value == element:
                return not counter
            kind = self._evaluator.value(value).kind
            return kind in (Kind.NUMBER, Kind.TENSOR) and canonical(value) != canonical(result)
        return isinstance(literal(value), (int, float))

    def _is_elementwise_call(
        self, call: cst.Call, element: str, counter: bool, result: cst.BaseExpression, adds: bool
    ) -> bool:
        name = self._evaluator.names.qualified(call.func)
        parts = [argument.value for argument in call.args]
        if name is None and isinstance(call.func, cst.Attribute):
            parts.append(call.func.value)
            name = f"torch.{call.func.attr.value}"
        module, _, last = (name or "").rpartition(".")
        if module not in ("torch", "torch.nn.functional") or last not in _ELEMENTWISE:
            return False
        if any(argument.star or argument.keyword is not None for argument in call.args):
            return False
        return all(self._is_elementwise(part, element, counter, result, adds) for part in parts)


def _only(body: cst.BaseSuite) -> cst.CSTNode | None:
    """Return the only small statement of a block."""
    lines = [line for line in body.body if isinstance(line, cst.BaseCompoundStatement | cst.SimpleStatementLine)]
    if len(lines) != 1 or not isinstance(lines[0], cst.SimpleStatementLine) or len(lines[0].body) != 1:
        return None
    return lines[0].body[0]


def _is_at(subscript: cst.Subscript, name: str) -> bool:
    """Return whether a subscript takes the element at a counter: ``x[i]``."""
    index = subscript.slice[0].slice
    if len(subscript.slice) != 1 or not isinstance(index, cst.Index):
        return False
    return isinstance(index.value, cst.Name) and index.value.value == name


def _is_zero(indices: list[cst.BaseExpression]) -> bool:
    return len(indices) == 1 and literal(indices[0]) == 0


def _adds(statement: cst.AugAssign) -> bool:
    return isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign))
