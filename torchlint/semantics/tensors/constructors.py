"""What the arguments of torch's factories and legacy constructors mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import LEGACY_CONSTRUCTORS, SIZED_FACTORIES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import Arguments, identifier, literal, method_call

_MAX_DEPTH = 8
_SHAPED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "eye"))
_DISPLAYS = (cst.List, cst.Tuple, cst.ListComp)
_INTEGER_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)
_INTEGER_CALLS = frozenset(("builtins.len", "builtins.int", "builtins.ord"))
_INTEGER_METHODS = ("size", "numel", "nelement", "dim", "ndimension")
# What an integer type can hold; of an unknown type only what all of them can.
_RANGES = {
    "torch.uint8": (0, 2**8 - 1),
    "torch.int8": (-(2**7), 2**7 - 1),
    "torch.int16": (-(2**15), 2**15 - 1),
    "torch.short": (-(2**15), 2**15 - 1),
    "torch.int32": (-(2**31), 2**31 - 1),
    "torch.int": (-(2**31), 2**31 - 1),
    "torch.int64": (-(2**63), 2**63 - 1),
    "torch.long": (-(2**63), 2**63 - 1),
}
_NARROWEST = (0, 2**7 - 1)
_FLOATING = frozenset(
    f"torch.{name}"
    for name in "float32 float64 float16 bfloat16 float double half bool complex64 complex128 cfloat".split()
)


class Modern(NamedTuple):
    """The factory that does what a legacy constructor does with its arguments."""

    factory: str
    """Its qualified name; it also needs the dtype of the constructor."""

    exact: bool
    """Whether every element is visibly a number, so that the two cannot differ."""

    evidence: Evidence


class Constructors:
    """Reads the arguments of factories."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._depth = 0
        self._own: frozenset[str] | None = None

    def modern(self, call: cst.Call) -> Modern | None:
        """Return what to write for a legacy constructor: of several numbers or a size, of data, or None if unclear."""
        values = [argument.value for argument in call.args]
        if not values or any(argument.star or argument.keyword is not None for argument in call.args):
            return None
        if len(values) > 1 or self.is_integer(values[0]):
            exact = all(self.is_integer(value) for value in values)
            return Modern("torch.empty", exact, Evidence.PROVEN if exact else Evidence.INFERRED)
        only = values[0]
        if isinstance(only, _DISPLAYS) or _is_repeated_list(only):
            return Modern("torch.tensor", is_python_data(only), Evidence.PROVEN)
        size = method_call(only, "size")
        if size is not None and isinstance(only, cst.Call) and not only.args:
            return Modern("torch.empty", False, Evidence.INFERRED)
        value = self._evaluator.value(only)
        if value.kind is Kind.NDARRAY:
            return Modern("torch.as_tensor", False, min(value.evidence, Evidence.INFERRED))
        return None

    def is_integer(self, expression: cst.BaseExpression) -> bool:
        """Return whether an expression is certainly a Python integer."""
        number = literal(expression)
        if number is not None:
            return isinstance(number, int) and not isinstance(number, bool)
        if isinstance(expression, cst.BinaryOperation):
            sides = self.is_integer(expression.left) and self.is_integer(expression.right)
            return sides and isinstance(expression.operator, _INTEGER_OPERATORS)
        if isinstance(expression, cst.Subscript):
            owner = expression.value
            is_size = method_call(owner, "size") is not None and not self._is_own("size")
            return is_size or (
                isinstance(owner, cst.Attribute) and owner.attr.value == "shape" and not self._is_own("shape")
            )
        if isinstance(expression, cst.Call):
            if self._evaluator.names.qualified(expression.func) in _INTEGER_CALLS:
                return True
            method = expression.func.attr.value if isinstance(expression.func, cst.Attribute) else ""
            if method not in _INTEGER_METHODS or self._is_own(method):
                return False
            return bool(expression.args) or method != "size"
        return self._is_integer_name(expression)

    def _is_own(self, name: str) -> bool:
        """Whether a class of the file has a method or attribute that is called as one of a tensor."""
        if self._own is None:
            self._own = frozenset(self._members())
        return name in self._own

    def _members(self) -> Iterator[str]:
        tree = self._evaluator.tree
        for target in tree.nodes(cst.AssignTarget):
            scopes = (a for a in tree.ancestors(target) if isinstance(a, (cst.ClassDef, cst.FunctionDef)))
            if isinstance(target.target, cst.Attribute) or isinstance(next(scopes, None), cst.ClassDef):
                yield identifier(target.target)
        yield from (each.name.value for each in tree.nodes(cst.FunctionDef))

    def _is_integer_name(self, expression: cst.BaseExpression) -> bool:
        if isinstance(expression, cst.Name) and self._depth < _MAX_DEPTH:
            bindings = self._evaluator.flow.definitions(expression)
            self._depth += 1
            integers = bool(bindings) and all(self._binds_integer(binding) for binding in bindings)
            self._depth -= 1
            if integers:
                return True
        value = self._evaluator.value(expression)
        return value.kind is Kind.NUMBER and isinstance(value.literal, int) and not isinstance(value.literal, bool)

    def _binds_integer(self, binding: Binding) -> bool:
        """Whether a name gets an integer: ``n = len(x)``, ``n, c = x.shape``."""
        if binding.kind is not BindingKind.ASSIGNMENT or binding.value is None:
            return False
        if not binding.path:
            return self.is_integer(binding.value)
        is_shape = isinstance(binding.value, cst.Attribute) and binding.value.attr.value == "shape"
        return len(binding.path) == 1 and (is_shape or method_call(binding.value, "size") is not None)

    def converts_alike(self, values: list[cst.BaseExpression], dtype: str | None) -> bool:
        """Return whether a CPU and an accelerator certainly turn these numbers into the same ones of a dtype.

        A float that an integer type cannot hold becomes whatever the processor makes of it.
        """
        if dtype in _FLOATING or all(self._is_whole(value) for value in values):
            return True
        least, most = _RANGES.get(dtype or "", _NARROWEST)
        return all(self._fits(value, least, most) for value in values)

    def _is_whole(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, (cst.List, cst.Tuple)):
            return all(self._is_whole(element.value) for element in value.elements)
        return self.is_integer(value) or isinstance(literal(value), bool)

    def _fits(self, value: cst.BaseExpression, least: int, most: int) -> bool:
        if isinstance(value, (cst.List, cst.Tuple)):
            return all(self._fits(element.value, least, most) for element in value.elements)
        number = literal(value)
        return isinstance(number, (bool, int, float)) and least <= number <= most

    def is_tensor(self, expression: cst.BaseExpression) -> bool:
        """Return whether an expression holds a tensor; of a variable that is only named so, by what is asked of it."""
        value = self._evaluator.value(expression)
        if value.kind not in (Kind.TENSOR, Kind.BATCH):
            return False
        if value.evidence is not Evidence.NAMED or not isinstance(expression, cst.Name):
            return True
        return bool(self._evaluator.usage.attributes(expression)) and self._is_asked(expression)

    def _is_asked(self, variable: cst.Name) -> bool:
        """Whether an attribute is read of what a variable holds here, not of what it is bound to afterwards."""
        flow, tree = self._evaluator.flow, self._evaluator.tree
        held = {id(binding.node) for binding in flow.definitions(variable)}
        asked = [name for name in tree.named(variable.value) if isinstance(tree.parent(name), cst.Attribute)]
        return not held or any(id(binding.node) in held for name in asked for binding in flow.definitions(name))

    def wraps_existing(self, call: cst.Call, name: str | None, given: Arguments) -> bool:
        """Return whether a factory is given a tensor, or an array that ``as_tensor`` does not copy."""
        if name == "torch.normal" and given.absent("size"):
            return True
        if name in SIZED_FACTORIES or not call.args:
            return False
        data = call.args[0].value
        if name in LEGACY_CONSTRUCTORS:  # which get lists and arrays, whatever these are called
            return self.is_tensor(data) and not self._may_be_array(data)
        if name != "torch.as_tensor":
            return self.is_tensor(data)
        return self._evaluator.value(data).kind is Kind.NDARRAY or not self.is_data(data)

    def _may_be_array(self, data: cst.BaseExpression) -> bool:
        """Whether only its name, or what arrays have too, says that a parameter, perhaps compared, is a tensor."""
        compared = data.left if isinstance(data, cst.Comparison) else data
        if not isinstance(compared, cst.Name) or self._evaluator.usage.as_tensor(compared):
            return self._evaluator.value(data).evidence is Evidence.NAMED
        bindings = self._evaluator.flow.definitions(compared)
        return bool(bindings) and all(b.kind is BindingKind.PARAMETER and not self._is_annotated(b) for b in bindings)

    def _is_annotated(self, binding: Binding) -> bool:
        parameter = self._evaluator.tree.parent(binding.node)
        return isinstance(parameter, cst.Param) and parameter.annotation is not None

    def holds_nothing(self, call: cst.Call) -> bool:
        """Return whether a factory makes a tensor without elements: ``torch.empty(0)``, ``torch.LongTensor()``."""
        values = [argument.value for argument in call.args if argument.keyword is None]
        display = values[0] if values and isinstance(values[0], (cst.List, cst.Tuple)) else None
        is_shaped = self._evaluator.names.qualified(call.func) in _SHAPED
        if not is_shaped and (not call.args or (display is not None and not display.elements)):
            return True
        sizes = [element.value for element in display.elements] if display is not None else values
        return is_shaped and any(literal(size) == 0 for size in sizes)

    def counts(self, given: Arguments) -> bool:
        """Return whether an ``arange`` goes in whole steps from a whole number, so that every value is exact."""
        alone = given.get("end") is None
        start, step = given.get("start"), given.get("step")
        from_integer = start is None or alone or self.is_integer(start)
        return not given.open and from_integer and (step is None or self.is_integer(step))

    def is_data(self, expression: cst.BaseExpression) -> bool:
        """Return whether an expression is data that is no tensor: numbers, lists of them, arrays."""
        if isinstance(expression, _DISPLAYS):
            return True
        value = self._evaluator.value(expression)
        if value.kind is Kind.SEQUENCE:
            return not value.iterated().is_tensor
        return value.kind in (Kind.NUMBER, Kind.NDARRAY)


def _is_repeated_list(expression: cst.BaseExpression) -> bool:
    """Return whether an expression is a list written out times something: ``[0] * n``."""
    if not isinstance(expression, cst.BinaryOperation) or not isinstance(expression.operator, cst.Multiply):
        return False
    return isinstance(expression.left, cst.List) or isinstance(expression.right, cst.List)


def is_python_data(expression: cst.BaseExpression) -> bool:
    """Return whether an expression is a number or lists of numbers, all of them written out."""
    if isinstance(expression, (cst.List, cst.Tuple)):
        return all(is_python_data(element.value) for element in expression.elements)
    return isinstance(literal(expression), (bool, int, float))
