"""Tensors that NumPy makes and torch only takes over: ``torch.from_numpy(np.zeros(n))``."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DTYPE_OF_CONSTRUCTOR, NDARRAY_DTYPES
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import Arguments, bind, literal, method_call

_SHAPED = {"zeros": "shape dtype order", "ones": "shape dtype order", "empty": "shape dtype order"}
_SIGNATURES = {
    **_SHAPED,
    "full": "shape fill_value dtype order",
    "eye": "N M k dtype order",
    "identity": "n dtype",
    "arange": "start stop step dtype",
    "linspace": "start stop num",
    "random.rand": "",
    "random.randn": "",
    "random.randint": "low high size dtype",
    "random.permutation": "x",
}
_FACTORIES = {"identity": "eye", "random.randint": "randint", "random.permutation": "randperm"}
# What NumPy makes of no dtype; the size of its integers depends on the system and the release.
_DEFAULTS = {
    **dict.fromkeys(
        ("zeros", "ones", "empty", "eye", "identity", "linspace", "random.rand", "random.randn"), "float64"
    ),
    "full": "",
}
_TAKERS = frozenset(("torch.from_numpy", "torch.as_tensor", "torch.tensor"))
_LEGACY = frozenset(f"torch.{name}" for name in DTYPE_OF_CONSTRUCTOR)
_TORCH_DTYPES = {theirs: ours for ours, theirs in reversed(NDARRAY_DTYPES.items())}
_BUILT_IN = {"float": "float64", "bool": "bool"}
_ALIASES = {"double": "float64", "single": "float32", "half": "float16", "bool_": "bool"}
_WHOLE = ("int64", "int32", "uint8")


class Detour(NamedTuple):
    """A tensor that NumPy makes."""

    made: cst.Call
    """NumPy's call."""

    factory: str
    """The qualified name of the factory of torch that makes the same tensor, or one like it."""

    takes_over: bool
    """Whether the factory of torch takes all arguments as they are, but for the dtype."""

    dropped: tuple[cst.Arg, ...]
    """The arguments of NumPy's call that torch's is not given: the dtype."""

    dtype: str
    """The qualified name of the dtype to write, "" if none is needed."""

    options: tuple[cst.Arg, ...]
    """The arguments of the call that takes the array over, which the factory has too."""

    exact: bool
    """Whether the factory certainly makes the same values."""

    random: bool
    """Whether it draws random numbers."""


class NumpyDetours:
    """Recognises them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def find(self, call: cst.Call) -> Detour | None:
        """Return the detour that a call of torch ends, None if what it takes over is no fresh array of NumPy's."""
        taker = self._evaluator.names.qualified(call.func)
        if (taker not in _TAKERS and taker not in _LEGACY) or not call.args or call.args[0].star:
            return None
        if call.args[0].keyword is not None and call.args[0].keyword.value != "data":
            return None
        array, casts = _unwrapped(call.args[0].value)
        name = self._evaluator.names.qualified(array.func) if array is not None else None
        if array is None or name is None or not name.startswith("numpy."):
            return None
        name = name.removeprefix("numpy.")
        given = bind(array.args, _SIGNATURES.get(name, "").split())
        if name not in _SIGNATURES or given.open or not array.args:
            return None
        if name.startswith("random.") and name != "random.permutation" and _draws_one(name, given):
            return None
        return self._described(call, array, name, given, casts)

    def _described(
        self, call: cst.Call, array: cst.Call, name: str, given: Arguments, casts: tuple[cst.BaseExpression, ...]
    ) -> Detour:
        taker = self._evaluator.names.qualified(call.func) or ""
        options = tuple(call.args[1:])
        asked = next((o.value for o in options if o.keyword is not None and o.keyword.value == "dtype"), None)
        own = asked is not None and self._is_dtype(asked)
        theirs = casts[-1] if casts else given.get("dtype")
        dtype = self._numpy_dtype(theirs) if theirs is not None else self._default(name, given)
        if taker in _LEGACY:
            written = "" if taker == "torch.Tensor" else DTYPE_OF_CONSTRUCTOR[taker.rpartition(".")[2]]
            is_known = not options
        else:
            written = "" if own else _TORCH_DTYPES.get(dtype or "", "")
            is_known = (own if asked is not None else dtype is not None) and all(
                option.keyword is not None for option in options
            )
        once = not casts and not own and taker not in _LEGACY
        return Detour(
            array,
            f"torch.{_FACTORIES.get(name, name.removeprefix('random.'))}",
            is_known and _agrees(name, given, dtype),
            (given.nodes["dtype"],) if "dtype" in given.nodes else (),
            written,
            options,
            _is_exact(name, given, dtype if once else None),
            name.startswith("random."),
        )

    def _is_dtype(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression is certainly a dtype: of None the array's is kept, where a factory takes its own."""
        value = self._evaluator.value(expression)
        is_open = isinstance(expression, cst.Attribute) and self._evaluator.names.qualified(expression) is None
        return value.kind is Kind.DTYPE and value.evidence is Evidence.PROVEN and not is_open

    def _default(self, name: str, given: Arguments) -> str | None:
        if name == "full":  # the type of the number
            value = literal(given.get("fill_value"))
            return "bool" if isinstance(value, bool) else "float64" if isinstance(value, float) else None
        return _DEFAULTS.get(name)

    def _numpy_dtype(self, expression: cst.BaseExpression) -> str | None:
        """The name of a dtype that is the same on every system."""
        text = literal(expression)
        name = text if isinstance(text, str) else self._evaluator.names.qualified(expression) or ""
        if name.startswith("builtins."):
            return _BUILT_IN.get(name.removeprefix("builtins."))
        name = name.removeprefix("numpy.")
        name = _ALIASES.get(name, name)
        return name if name in _TORCH_DTYPES else None


def _is_exact(name: str, given: Arguments, dtype: str | None) -> bool:
    """Return whether torch certainly makes the same values; of ``full`` only if nothing but it rounds the number.

    The strides of an array without elements are others than torch's.
    """
    if name in ("eye", "identity"):
        sizes = [given.named[each] for each in ("N", "M", "n") if each in given.named]
        return all(_is_size(size) for size in sizes)
    shape = given.get("shape")
    parts = [e.value for e in shape.elements] if isinstance(shape, (cst.Tuple, cst.List)) else [shape]
    if not parts or not all(_is_size(part) for part in parts):
        return False
    return name in _SHAPED or (name == "full" and _fills(given.get("fill_value"), dtype))


def _is_size(expression: cst.BaseExpression | None) -> bool:
    value = literal(expression)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _fills(expression: cst.BaseExpression | None, dtype: str | None) -> bool:
    """Return whether NumPy and torch certainly round a number to the same one of a dtype."""
    value = literal(expression)
    if isinstance(value, bool):
        return dtype == "bool"
    if isinstance(value, int) and dtype in _WHOLE:
        return 0 <= value <= 127
    return isinstance(value, (int, float)) and dtype in ("float64", "float32") and abs(value) < 1e30


def _unwrapped(expression: cst.BaseExpression) -> tuple[cst.Call | None, tuple[cst.BaseExpression, ...]]:
    """Return the call that makes an array, without ``.copy()``, and what it is cast to after that, the last last."""
    casts: list[cst.BaseExpression] = []
    while (method := method_call(expression, "astype", "copy")) is not None and isinstance(expression, cst.Call):
        if method.attr.value == "astype":
            if len(expression.args) != 1 or expression.args[0].star or expression.args[0].keyword is not None:
                return None, ()
            casts.insert(0, expression.args[0].value)
        elif expression.args or not isinstance(method.value, cst.Call):
            break
        expression = method.value
    return (expression if isinstance(expression, cst.Call) else None), tuple(casts)


def _draws_one(name: str, given: Arguments) -> bool:
    """Return whether a function draws a single number, not an array."""
    return name == "random.randint" and given.get("size") is None


def _agrees(name: str, given: Arguments, dtype: str | None) -> bool:
    """Return whether NumPy and torch understand the arguments alike, but for the dtype."""
    if name in ("random.rand", "random.randn"):
        return not given.named
    if name in ("eye", "identity") and dtype == "float16":
        return False  # older releases of torch have none on the CPU
    if name == "full" and not isinstance(given.get("shape"), (cst.Tuple, cst.List)):
        return False  # torch takes no bare number there
    taken = {"full": ("shape", "fill_value"), "eye": ("N", "M"), "identity": ("n",)}.get(name, ("shape",))
    if name not in _DEFAULTS or name == "linspace" or given.named.keys() - {*taken, "dtype"} or given.extra:
        return False
    return all(node.keyword is None for each, node in given.nodes.items() if each != "dtype")
