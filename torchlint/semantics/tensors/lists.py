"""Lists that become tensors: what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tensors.constructors import Constructors
from torchlint.semantics.values import Kind, Value
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

# The names in the annotation of what is a tensor or a number, and no list of them.
_NUMBERS_OR_TENSORS = frozenset(
    "int float bool None torch Tensor FloatTensor LongTensor IntTensor typing Union Optional".split()
)

# What a length is compared with.
_FILLED = ((cst.GreaterThan, 0), (cst.NotEqual, 0), (cst.GreaterThanEqual, 1))
_EMPTY = ((cst.Equal, 0), (cst.LessThan, 1), (cst.LessThanEqual, 0))


@dataclass(frozen=True, slots=True)
class Repeated:
    """One number, alone or several times."""

    value: cst.BaseExpression
    count: cst.BaseExpression | None
    """How often it stands in the list, None where the shape is written out."""

    shape: str


class Lists:
    """Tells lists of tensors and of one number from other data."""

    def __init__(self, evaluator: Evaluator, constructors: Constructors) -> None:
        self._evaluator = evaluator
        self._constructors = constructors

    def tensors(self, data: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
        """Return expressions for the tensors that a list certainly holds, all of them; () if it holds anything else."""
        if isinstance(data, (cst.List, cst.Tuple)):
            parts = [e.value for e in data.elements if isinstance(e, cst.Element)]
            is_whole = len(parts) == len(data.elements) and bool(parts)
            return tuple(parts) if is_whole and all(self._is_tensor(part) for part in parts) else ()
        if isinstance(data, (cst.ListComp, cst.GeneratorExp)):
            return (data.elt,) if self._is_tensor(data.elt) else ()
        value = self._evaluator.value(data)
        holds = value.kind is Kind.SEQUENCE and _holds_tensors(value)
        return (data,) if holds and not self._is_empty(data) else ()

    def _is_empty(self, data: cst.BaseExpression) -> bool:
        """Whether a list stands in a branch that is taken if nothing is in it: ``f(x) if x else tensor(x)``."""
        child: cst.CSTNode = data
        for ancestor in self._evaluator.tree.ancestors(data):
            if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
                is_filled = _is_filled(ancestor.test, data)
                if is_filled is not None and is_filled is not (child is ancestor.body):
                    return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _is_tensor(self, expression: cst.BaseExpression) -> bool:
        value = self._evaluator.value(expression)
        return value.is_tensor and value.evidence >= Evidence.INFERRED and not self._is_excluded(expression)

    def _is_excluded(self, expression: cst.BaseExpression) -> bool:
        """Whether the branch that an expression stands in is only taken if it is no tensor."""
        child: cst.CSTNode = expression
        for ancestor in self._evaluator.tree.ancestors(expression):
            if isinstance(ancestor, cst.If) and child is ancestor.body and self._denies(ancestor.test, expression):
                return True
            if isinstance(ancestor, cst.FunctionDef):
                return False
            child = ancestor
        return False

    def _denies(self, test: cst.BaseExpression, expression: cst.BaseExpression) -> bool:
        """Whether a test says that an expression is no tensor."""
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self._denies(test.left, expression) or self._denies(test.right, expression)
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
            return False
        asked = test.expression
        if not isinstance(asked, cst.Call) or not asked.args or not is_same(asked.args[0].value, expression):
            return False
        name = self._evaluator.names.qualified(asked.func)
        kinds = [self._evaluator.names.qualified(argument.value) for argument in asked.args[1:]]
        return name == "torch.is_tensor" or (name == "builtins.isinstance" and kinds == ["torch.Tensor"])

    def _is_declared_number(self, expression: cst.BaseExpression) -> bool:
        """Whether a variable is a parameter that is annotated as a tensor or a number."""
        bindings = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        if len(bindings) != 1:
            return False
        if bindings[0].kind is BindingKind.ASSIGNMENT and isinstance(bindings[0].value, cst.Name):
            return self._is_declared_number(bindings[0].value)
        parameter = self._evaluator.tree.parent(bindings[0].node)
        if not isinstance(parameter, cst.Param) or parameter.annotation is None:
            return False
        nodes = self._evaluator.tree.descendants(parameter.annotation)
        named = {node.value for node in nodes if isinstance(node, cst.Name)}
        return bool(named & {"int", "float"}) and named <= _NUMBERS_OR_TENSORS

    def number(self, data: cst.BaseExpression) -> Repeated | None:
        """Return the only number that data consists of: ``x``, ``[x]``, ``[x] * n``."""
        if isinstance(data, cst.BinaryOperation) and isinstance(data.operator, cst.Multiply):
            sides = (data.left, data.right) if isinstance(data.left, cst.List) else (data.right, data.left)
            only = _only(sides[0])
            return Repeated(only, sides[1], "") if only is not None and self._is_number(only) else None
        only = _only(data)
        if only is not None:
            return Repeated(only, None, "(1,)") if self._is_number(only) else None
        return Repeated(data, None, "()") if self._is_number(data) else None

    def _is_number(self, expression: cst.BaseExpression) -> bool:
        if any(
            isinstance(node, cst.Call) and self._reads(node) for node in self._evaluator.tree.descendants(expression)
        ):
            return False
        value = self._evaluator.value(expression)
        if value.kind is Kind.NUMBER and value.evidence >= Evidence.INFERRED:
            return True
        if self._is_excluded(expression) and self._is_declared_number(expression):
            return True
        return literal(expression) is not None or self._constructors.is_integer(expression)

    def _reads(self, call: cst.Call) -> bool:
        """Whether a call may turn a tensor into the number."""
        if method_call(call, "item", "tolist") is not None:
            return True
        return self._evaluator.names.qualified(call.func) in ("builtins.float", "builtins.int")


def _only(data: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the only element of a list that is written out."""
    if not isinstance(data, (cst.List, cst.Tuple)) or len(data.elements) != 1:
        return None
    element = data.elements[0]
    return element.value if isinstance(element, cst.Element) else None


def _is_filled(test: cst.BaseExpression, data: cst.BaseExpression) -> bool | None:
    """Return whether something is in a list if a test holds, or nothing; None if it asks for something else."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        asked = _is_filled(test.expression, data)
        return None if asked is None else not asked
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and _is_length(test.left, data):
        operator, number = type(test.comparisons[0].operator), literal(test.comparisons[0].comparator)
        return True if (operator, number) in _FILLED else False if (operator, number) in _EMPTY else None
    return True if is_same(test, data) or _is_length(test, data) else None


def _is_length(value: cst.BaseExpression, data: cst.BaseExpression) -> bool:
    is_length = isinstance(value, cst.Call) and identifier(value.func) == "len" and len(value.args) == 1
    return is_length and isinstance(value, cst.Call) and is_same(value.args[0].value, data)


def _holds_tensors(value: Value) -> bool:
    element = value.iterated()
    return element.is_tensor and element.evidence >= Evidence.INFERRED
