"""Tensors that a factory makes with one dtype and that are cast to another at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DATA_FACTORIES, DTYPE_CASTS, DTYPE_OF_CONSTRUCTOR, SIZED_FACTORIES
from torchlint.semantics.tensors.constructors import Constructors
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import Arguments, bind, identifier, literal, method_call

_CAST_AT_ONCE = SIZED_FACTORIES | DATA_FACTORIES
_FLOAT = "the default dtype"
_INTEGER, _BOOL = "torch.int64", "torch.bool"
_SAME = {
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.half": "torch.float16",
    "torch.long": "torch.int64",
    "torch.int": "torch.int32",
    "torch.short": "torch.int16",
}
# Factories of floats, unless a dtype is given.
_OF_FLOATS = frozenset(f"torch.{name}" for name in "zeros ones empty eye rand randn linspace logspace".split())
_OF_INTEGERS = frozenset(("torch.randint", "torch.randperm"))
_OF_BITS = frozenset(("torch.zeros", "torch.ones", "torch.empty", "torch.eye"))
# Factories that older releases of torch do not have for narrow floats on the CPU, and those floats.
_COMPUTED = frozenset(f"torch.{name}" for name in "eye arange rand randn linspace logspace randint randperm".split())
_WHOLE_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)
_NARROW = ("torch.float16", "torch.bfloat16")
FLOATING = ("torch.float32", "torch.float64", "torch.float16", "torch.bfloat16")
_LARGEST_EXACT = 2**24
"""Up to here 32-bit floats hold every whole number."""

_LIMITS = {"torch.float16": 65504, "torch.int64": 2**63 - 1024}
"""Above these, with room for the rounding of floats, a dtype does not hold what the default dtype holds."""

_LARGEST = {"torch.uint8": 255, "torch.int8": 127, "torch.int16": 32767, "torch.int32": 2**31 - 1}


class Cast(NamedTuple):
    """A factory call and the cast of what it makes."""

    call: cst.Call
    factory: cst.Call
    name: str
    """The qualified name of the factory."""

    dtype: str | None
    """The qualified name of the dtype, None where it is chosen at run time."""

    expression: cst.BaseExpression | None
    """What names the dtype, None where the method does."""

    given: Arguments
    exact: bool
    """Whether the factory certainly makes the same values with that dtype."""

    fixable: bool
    """Whether the factory takes the dtype, and makes about the same values with it."""

    evidence: Evidence
    legacy: bool
    """Whether a type of tensor is named, which stands for the CPU as well: ``.type(torch.LongTensor)``."""

    rounds: bool
    """Whether it makes whole numbers of fractions, which a factory of whole numbers never has, or wraps them."""


class Casts:
    """Recognises them."""

    def __init__(self, evaluator: Evaluator, constructors: Constructors) -> None:
        self._evaluator = evaluator
        self._constructors = constructors

    def find(self, call: cst.Call) -> Cast | None:
        """Return the cast of a fresh tensor that a call makes, None unless it certainly changes the dtype.

        Of a dtype that is chosen at run time nobody knows: there the cast changes it in some runs.
        """
        method = method_call(call, "to", "type", *DTYPE_CASTS)
        factory = method.value if method is not None else None
        if method is None or not isinstance(factory, cst.Call):
            return None
        name = self._evaluator.names.qualified(factory.func)
        legacy = self._legacy(call, factory) if method.attr.value == "type" else None
        target = (legacy or self._target(call, method.attr.value)) if name in _CAST_AT_ONCE else None
        if name is None or target is None:
            return None
        expression, dtype, evidence = target
        given = bind(factory.args, _POSITIONS.get(name, ()))
        made = self._made(name, given)
        if made is None or made == dtype or (made == _FLOAT and dtype == "torch.float32"):
            return None
        exact = self._is_exact(name, given, dtype)
        fixable = exact or (_is_taken(name, made, dtype) and not self._is_refused(given, dtype))
        rounds = made == _FLOAT and dtype not in (None, *FLOATING) and _has_fractions(name)
        rounds = rounds or self._wraps(given, dtype)
        return Cast(call, factory, name, dtype, expression, given, exact, fixable, evidence, legacy is not None, rounds)

    def _legacy(self, call: cst.Call, factory: cst.Call) -> tuple[None, str, Evidence] | None:
        """The dtype of the type of tensor that ``.type(torch.LongTensor)`` names, where the factory has no device."""
        if len(call.args) != 1 or "device" in bind(factory.args).named:
            return None
        text = literal(call.args[0].value)
        name = text if isinstance(text, str) else self._evaluator.names.qualified(call.args[0].value)
        module, _, last = (name or "").rpartition(".")
        is_type = module == "torch" and last != "Tensor" and last in DTYPE_OF_CONSTRUCTOR
        return (None, DTYPE_OF_CONSTRUCTOR[last], Evidence.INFERRED) if is_type else None

    def _target(self, call: cst.Call, method: str) -> tuple[cst.BaseExpression | None, str | None, Evidence] | None:
        """What a method casts to: what names it, its qualified name, and how certain it is that it is a dtype."""
        if method in DTYPE_CASTS:
            return (None, DTYPE_CASTS[method], Evidence.PROVEN) if not call.args else None
        if len(call.args) != 1 or call.args[0].star:
            return None
        if call.args[0].keyword is not None and call.args[0].keyword.value != "dtype":
            return None
        expression = call.args[0].value
        value = self._evaluator.value(expression)
        is_attribute = isinstance(expression, cst.Attribute) and expression.attr.value == "dtype"
        if value.kind is not Kind.DTYPE and not is_attribute:
            return None
        name = _SAME.get(value.name or "", value.name)
        # Attributes, entries and variables of modules may be set by code that is not here, to a device too.
        named = self._evaluator.names.qualified(expression) or ""
        is_itself = isinstance(expression, cst.Attribute) or named == f"torch.{identifier(expression)}"
        certain = value.kind is Kind.DTYPE and named.startswith("torch.") and is_itself
        return expression, name, value.evidence if certain else Evidence.INFERRED

    def _made(self, name: str, given: Arguments) -> str | None:
        """The dtype that a factory makes if none is given, None where that is not certain."""
        if name in _OF_FLOATS:
            return _FLOAT
        if name in _OF_INTEGERS:
            return _INTEGER
        if given.open_positions:
            return None
        if name == "torch.full":
            return self._type_of(given.get("fill_value"))
        if name == "torch.arange":
            bounds = _bounds(given)
            if any(self._type_of(bound) == _FLOAT for bound in bounds):
                return _FLOAT
            return _INTEGER if bounds and all(self._counts(bound) for bound in bounds) else None
        return self._type_of(given.get("data"))

    def _wraps(self, given: Arguments, dtype: str | None) -> bool:
        """Whether a number that is written out is beyond a narrow type of integers."""
        data, most = given.get("fill_value") or given.get("data"), _LARGEST.get(dtype or "")
        least = 0 if dtype == "torch.uint8" else -(most or 0) - 1
        return data is not None and most is not None and any(not least <= n <= most for n in self._known_numbers(data))

    def _is_refused(self, given: Arguments, dtype: str | None) -> bool:
        """Whether a number is too large for a dtype: a cast makes something of it, a factory refuses it."""
        data = given.get("fill_value") or given.get("data")
        limit = _LIMITS.get(dtype or "")
        return data is not None and limit is not None and any(abs(n) > limit for n in self._known_numbers(data))

    def _known_numbers(self, data: cst.BaseExpression) -> Iterator[int | float]:
        """Yield the numbers of data that are written out, in place or where a name gets its value."""
        if isinstance(data, (cst.List, cst.Tuple)):
            for element in data.elements:
                yield from self._known_numbers(element.value)
        number = literal(data)
        number = self._evaluator.value(data).literal if number is None else number
        if isinstance(number, (int, float)):
            yield number

    def _counts(self, bound: cst.BaseExpression) -> bool:
        """Whether a bound of a range is a whole number, as far as this file shows: no float and no quotient."""
        if isinstance(bound, cst.BinaryOperation):
            return (
                isinstance(bound.operator, _WHOLE_OPERATORS) and self._counts(bound.left) and self._counts(bound.right)
            )
        if isinstance(bound, cst.UnaryOperation):
            return self._counts(bound.expression)
        value = self._evaluator.value(bound)
        if isinstance(value.literal, float) or value.is_tensor:
            return False
        return isinstance(bound, (cst.Name, cst.Attribute, cst.Subscript)) or self._type_of(bound) == _INTEGER

    def _type_of(self, data: cst.BaseExpression | None) -> str | None:
        """The dtype that torch infers for Python data that is written out."""
        if isinstance(data, (cst.List, cst.Tuple)):
            types = {self._type_of(e.value) if isinstance(e, cst.Element) else None for e in data.elements}
            if None in types:
                return None
            return next((each for each in (_FLOAT, _INTEGER, _BOOL) if each in types), _FLOAT)
        value = literal(data)
        if isinstance(value, bool):
            return _BOOL
        if isinstance(value, float):
            return _FLOAT
        is_integer = data is not None and self._constructors.is_integer(data)
        return _INTEGER if is_integer else None

    def _is_exact(self, name: str, given: Arguments, dtype: str | None) -> bool:
        if name in _COMPUTED and (dtype is None or dtype in _NARROW):
            return False
        if name == "torch.empty":  # in deterministic mode it is filled with the number that says most, of each dtype
            return dtype in FLOATING or any(literal(size) == 0 for size in given.extra)
        if name in _OF_BITS:
            return True
        if dtype is None or name not in ("torch.full", "torch.arange", "torch.tensor", "torch.as_tensor"):
            return False
        if name == "torch.arange":
            bounds = [literal(bound) for bound in _bounds(given)]
            whole = [bound for bound in bounds if isinstance(bound, int) and _holds(bound, dtype)]
            # A kernel for floats counts from the start in floats: the distance has to be one of them too.
            is_near = dtype not in FLOATING or sum(map(abs, whole)) <= _LARGEST_EXACT
            return dtype != _BOOL and len(whole) == len(bounds) and is_near
        data = given.get("fill_value" if name == "torch.full" else "data")
        return data is not None and _all_hold(data, dtype)


_POSITIONS = {
    "torch.full": ("size", "fill_value"),
    "torch.tensor": ("data",),
    "torch.as_tensor": ("data", "dtype", "device"),
}


def _bounds(given: Arguments) -> list[cst.BaseExpression]:
    """Return the bounds of a range and its step, by position or by name."""
    return [*given.extra, *(given.named[name] for name in ("start", "end", "step") if name in given.named)]


def _is_taken(name: str, made: str, dtype: str | None) -> bool:
    """Return whether a factory works with a dtype, other than one that it certainly makes exactly."""
    if name in _COMPUTED and dtype in _NARROW:
        return False
    if name == "torch.empty":
        return True
    if dtype is None or dtype in FLOATING:
        return name != "torch.arange" or made == _INTEGER
    if name in _OF_INTEGERS:
        return dtype in ("torch.int32", "torch.int64")
    # A narrow integer type refuses numbers that a cast would wrap; a step of half a unit cannot be one of integers.
    return name in ("torch.full", "torch.tensor", "torch.as_tensor") and dtype in ("torch.int64", "torch.bool")


def _all_hold(data: cst.BaseExpression, dtype: str) -> bool:
    """Return whether all numbers of data that is written out go through any default dtype and this one unchanged.

    One float among integers makes floats of all of them.
    """
    numbers = _numbers(data)
    if numbers is None:
        return False
    floats = any(isinstance(number, float) for number in numbers)
    return all(_holds(number, dtype) and (not floats or _holds(float(number), dtype)) for number in numbers)


def _numbers(data: cst.BaseExpression) -> list[int | float] | None:
    """Return the numbers of data, None unless all of them are written out."""
    if isinstance(data, (cst.List, cst.Tuple)):
        parts = [_numbers(e.value) if isinstance(e, cst.Element) else None for e in data.elements]
        known = [part for part in parts if part is not None]
        return [number for part in known for number in part] if len(known) == len(parts) else None
    value = literal(data)
    return [value] if isinstance(value, (bool, int, float)) else None


def _holds(value: float, dtype: str) -> bool:
    """Return whether a number is exactly one of a dtype, and one of the narrow floats if it is a float."""
    if not isinstance(value, int) and not (isfinite(value) and _is_half(value) and _is_bfloat(value)):
        return False
    if dtype == "torch.bool":
        return value in (0, 1)
    if dtype in ("torch.float32", "torch.float64"):
        return abs(value) <= _LARGEST_EXACT
    if dtype == "torch.float16":
        return abs(value) <= 2**11 and _is_half(value)
    if dtype == "torch.bfloat16":
        return abs(value) <= 2**8 and _is_bfloat(value)
    most = _LARGEST.get(dtype, 2**53 if dtype == "torch.int64" else -1)
    return value == int(value) and (0 if dtype == "torch.uint8" else -most) <= value <= most


def _is_half(value: float) -> bool:
    try:
        return bool(struct.unpack("e", struct.pack("e", value))[0] == value)
    except OverflowError:
        return False


def _is_bfloat(value: float) -> bool:
    try:
        packed = struct.pack(">f", value)
    except OverflowError:
        return False
    return packed.endswith(b"\0\0") and bool(struct.unpack(">f", packed)[0] == value)


def _has_fractions(name: str) -> bool:
    """Return whether a factory of floats draws or counts: ``linspace`` of integers rounds its steps another way."""
    return name in _COMPUTED and name != "torch.eye"
