"""What the host computes of tensors that it has just made and of Python numbers, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.torch_api import (
    COMPUTING_FUNCTIONS,
    COMPUTING_METHODS,
    DTYPE_CASTS,
    FILLING_METHODS,
    OF_ARRAYS,
    RESHAPING_METHODS,
    SIZED_FACTORIES,
    TENSOR_ATTRIBUTES,
    TENSOR_ONLY,
)
from torchlint.semantics.tensors.constructors import Constructors
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, is_none, literal, method_call

_MAX_DEPTH = 6
_METHODS = COMPUTING_METHODS | RESHAPING_METHODS | FILLING_METHODS | frozenset(DTYPE_CASTS)
_PLACED = ("device", "out", "pin_memory", "generator")
_NUMBERS = frozenset(f"builtins.{name}" for name in ("len", "int", "float", "ord"))
_OF_NUMBERS = frozenset(f"builtins.{name}" for name in ("min", "max", "sum", "abs", "round", "pow"))
_CONSTANTS = frozenset(("numpy.pi", "numpy.e", "numpy.inf", "torch.pi", "torch.inf", "torch.nan"))
_SIZES = re.compile(r"(^|_)(size|dim|width|height|stride)$|^(n|num)_[a-z]+(_[a-z]+)*$")
_IDENTITIES = (cst.In, cst.NotIn, cst.Is, cst.IsNot)
_TESTS = ("eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not")
_PLAIN = (Kind.DTYPE, Kind.STRING, Kind.NONE)


class HostValues:
    """Tells them from what depends on other tensors."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._constructors = Constructors(evaluator)
        self._active: list[int] = []
        self._numbers: frozenset[int] = frozenset()
        self._known: dict[int, bool] = {}

    @contextmanager
    def given(self, names: Iterable[cst.Name]) -> Iterator[None]:
        """Look at a function whose parameters of these names are given numbers, dtypes and shapes."""
        before, self._numbers = self._numbers, frozenset(map(id, names))
        known, self._known = self._known, {}
        try:
            yield
        finally:
            self._numbers, self._known = before, known

    def is_fresh(self, expression: cst.CSTNode) -> bool:
        """Return whether an expression is a tensor that is computed of fresh ones and numbers."""
        if self._active:
            return self._find_fresh(expression)  # what is found within a variable depends on where one started
        if id(expression) not in self._known:
            self._known[id(expression)] = self._find_fresh(expression)
        return self._known[id(expression)]

    def _find_fresh(self, expression: cst.CSTNode) -> bool:
        if isinstance(expression, cst.Call):
            return self._is_fresh_call(expression)
        if isinstance(expression, cst.BinaryOperation):
            return self._is_mixed([expression.left, expression.right])
        if isinstance(expression, cst.UnaryOperation):
            return not isinstance(expression.operator, cst.Not) and self.is_fresh(expression.expression)
        if isinstance(expression, cst.Comparison):
            if any(isinstance(each.operator, _IDENTITIES) for each in expression.comparisons):
                return False
            return self._is_mixed([expression.left, *(each.comparator for each in expression.comparisons)])
        if isinstance(expression, cst.Subscript):
            return self.is_fresh(expression.value) and self.is_own_index(expression)
        if isinstance(expression, cst.Attribute):
            return expression.attr.value in TENSOR_ATTRIBUTES and self.is_fresh(expression.value)
        return isinstance(expression, cst.Name) and self._is_fresh_name(expression)

    def is_own(self, expression: cst.BaseExpression) -> bool:
        """Return whether an expression depends on no other tensor: numbers, dtypes, fresh tensors, lists of them."""
        if isinstance(expression, (cst.List, cst.Tuple)):
            return all(self.is_own(element.value) for element in expression.elements)
        if literal(expression) is not None or is_none(expression) or isinstance(expression, cst.Ellipsis):
            return True
        if self._is_given(expression):
            return True
        if self.is_number(expression) or self.is_fresh(expression):
            return True
        return self._evaluator.value(expression).kind in _PLAIN or identifier(expression).endswith("dtype")

    def is_own_index(self, subscript: cst.Subscript) -> bool:
        """Return whether an index depends on no other tensor."""
        for element in subscript.slice:
            index = element.slice
            if isinstance(index, cst.Index):
                parts = [index.value]
            else:
                assert isinstance(index, cst.Slice)
                parts = [part for part in (index.lower, index.upper, index.step) if part is not None]
            if not all(map(self.is_own, parts)) or any(map(self._is_mask, parts)):
                return False
        return True

    def _is_mask(self, index: cst.BaseExpression) -> bool:
        """Whether an index picks elements by a test of them: a device must tell the host how many there are."""
        found = self._evaluator.flow.definitions(index) if isinstance(index, cst.Name) else []
        made = [index, *(binding.value for binding in found if not binding.path)]
        return any(_is_test(each) and self.is_fresh(each) for each in made if isinstance(each, cst.BaseExpression))

    def is_number(self, expression: cst.BaseExpression, depth: int = _MAX_DEPTH) -> bool:
        """Return whether an expression is a Python number, also by a name that only sizes have."""
        if depth == 0:
            return False
        if isinstance(literal(expression), (int, float)) or self._is_given(expression):
            return True
        if isinstance(expression, cst.UnaryOperation):
            return self.is_number(expression.expression, depth - 1)
        if isinstance(expression, cst.BinaryOperation):
            return self.is_number(expression.left, depth - 1) and self.is_number(expression.right, depth - 1)
        if isinstance(expression, cst.IfExp):
            return self.is_number(expression.body, depth - 1) and self.is_number(expression.orelse, depth - 1)
        if isinstance(expression, cst.Call):
            return self._gives_number(expression, depth)
        name = self._evaluator.names.qualified(expression) or ""
        if name in _CONSTANTS or name.startswith("math."):
            return True
        return self._constructors.is_integer(expression) or self._is_number_variable(expression, depth)

    def _is_given(self, expression: cst.CSTNode) -> bool:
        """Whether an expression is a parameter that is given no tensor, or a part of what one is given."""
        if not self._numbers:
            return False
        if isinstance(expression, cst.Subscript):
            return self._is_given(expression.value)
        if not isinstance(expression, cst.Name):
            return False
        found = self._evaluator.flow.definitions(expression)
        return bool(found) and all(
            id(binding.node) in self._numbers
            or (bool(binding.path) and binding.value is not None and self._is_given(binding.value))
            for binding in found
        )

    def _gives_number(self, call: cst.Call, depth: int) -> bool:
        name = self._evaluator.names.qualified(call.func) or ""
        if name in _NUMBERS or name.startswith("math."):
            return True
        if name in _OF_NUMBERS:
            return all(self.is_number(a.value, depth - 1) for a in call.args)
        return self._constructors.is_integer(call) or self._evaluator.value(call).kind is Kind.NUMBER

    def _is_number_variable(self, expression: cst.BaseExpression, depth: int) -> bool:
        value = self._evaluator.value(expression)
        if value.kind is Kind.NUMBER:
            return True
        if value.known or not isinstance(expression, (cst.Name, cst.Attribute)):
            return False
        if isinstance(expression, cst.Name):
            found = self._evaluator.flow.definitions(expression)
            assigned = [b.value if b.kind is BindingKind.ASSIGNMENT and not b.path else None for b in found]
            if assigned and all(v is not None and self.is_number(v, depth - 1) for v in assigned):
                return True
        is_array = not self._evaluator.usage.attributes(expression).isdisjoint(TENSOR_ONLY | OF_ARRAYS)
        return not is_array and _SIZES.search(identifier(expression)) is not None

    def _is_mixed(self, parts: list[cst.BaseExpression]) -> bool:
        return all(map(self.is_own, parts)) and any(map(self.is_fresh, parts))

    def _is_fresh_call(self, call: cst.Call) -> bool:
        if any(
            argument.star == "**" or (argument.star and not self._is_given(argument.value)) for argument in call.args
        ):
            return False
        name = self._evaluator.names.qualified(call.func)
        if name in SIZED_FACTORIES:  # data is copied to the device wherever one computes with it
            keywords = (argument.keyword.value for argument in call.args if argument.keyword is not None)
            return name != "torch.normal" and not any(keyword in _PLACED for keyword in keywords)
        values = [argument.value for argument in call.args]
        if name is not None:
            return name in COMPUTING_FUNCTIONS and all(map(self.is_own, values)) and any(map(self._holds_fresh, values))
        if not isinstance(call.func, cst.Attribute) or not self.is_fresh(call.func.value):
            return False
        method = call.func.attr.value
        return (method in _METHODS or self._only_casts(call, method)) and all(map(self.is_own, values))

    def _holds_fresh(self, value: cst.BaseExpression) -> bool:
        parts = [element.value for element in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
        return any(map(self.is_fresh, parts))

    def _only_casts(self, call: cst.Call, method: str) -> bool:
        if method not in ("to", "type") or len(call.args) != 1:
            return False
        argument = call.args[0].value
        return self._evaluator.value(argument).kind is Kind.DTYPE or identifier(argument).endswith("dtype")

    def _is_fresh_name(self, name: cst.Name) -> bool:
        """Whether a local variable only holds fresh tensors; one that is computed of itself, what it started with."""
        if len(self._active) >= _MAX_DEPTH or self._evaluator.definitions.enclosing_function(name) is None:
            return False
        bindings = self._evaluator.flow.definitions(name)
        return bool(bindings) and all(map(self._binds_fresh, bindings))

    def _binds_fresh(self, binding: Binding) -> bool:
        if binding.value is None or not isinstance(binding.scope.node, cst.FunctionDef):
            return False
        if id(binding.node) in self._active:
            return True
        self._active.append(id(binding.node))
        try:
            if binding.kind is BindingKind.AUGMENTED:
                return self.is_fresh(binding.node) and self.is_own(binding.value)
            return binding.kind is BindingKind.ASSIGNMENT and self.is_fresh(binding.value)
        finally:
            self._active.pop()


def _is_test(expression: cst.BaseExpression) -> bool:
    """Return whether an expression compares each element, or joins such comparisons: ``(x > 2) & ~x.isnan()``."""
    if isinstance(expression, cst.BinaryOperation):
        return isinstance(expression.operator, (cst.BitAnd, cst.BitOr, cst.BitXor)) and (
            _is_test(expression.left) or _is_test(expression.right)
        )
    if isinstance(expression, cst.UnaryOperation):
        return isinstance(expression.operator, cst.BitInvert)
    return isinstance(expression, cst.Comparison) or method_call(expression, *_TESTS) is not None
