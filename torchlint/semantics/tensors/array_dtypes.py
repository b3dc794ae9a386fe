"""The dtypes of arrays that NumPy makes of other arrays, of images and of what is written out."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import literal

Dtypes = frozenset[str | None]
UNKNOWN: Dtypes = frozenset((None,))
OTHER: Dtypes = frozenset(("",))
"""A dtype that is not known, and hardly one of those that NumPy makes of plain numbers."""

_FLOATS: Dtypes = frozenset(("float64",))
_WHOLE: Dtypes = frozenset(("int64",))
_TRUTHS: Dtypes = frozenset(("bool",))
_IMAGES: Dtypes = frozenset(("uint8",))
_KEEPING = frozenset(
    (
        "array asarray ascontiguousarray asanyarray concatenate stack vstack hstack column_stack tile repeat pad copy "
        "diff sort setdiff1d delete insert roll expand_dims squeeze transpose reshape "
        "swapaxes moveaxis flip fliplr flipud broadcast_to atleast_1d atleast_2d ravel"
    ).split()
)
"""Functions whose result has the dtype of their first argument, or that of the arrays in it."""
_OF_IMAGES = ("PIL.", "cv2.", "imageio.", "skimage.io.")
_MAX_STEPS = 12


class ArrayDtypes:
    """Follows data back to what gave it its dtype."""

    def __init__(self, evaluator: Evaluator, of_array: Callable[[cst.BaseExpression], Dtypes | None]) -> None:
        self._evaluator = evaluator
        self._of_array = of_array

    def made(self, function: str, call: cst.Call) -> Dtypes:
        """Return the dtypes of what a function of NumPy makes that is told none."""
        given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
        if function in ("argsort", "randint", "integers"):
            return _WHOLE
        if function in ("loadtxt", "genfromtxt", "fromfile"):
            return _FLOATS
        if function == "arange":
            return _FLOATS if any(isinstance(literal(value), float) for value in given) else _WHOLE
        if function == "full" and len(given) > 1:
            return self._of_item(given[1])
        return self.data(given[0]) if function in _KEEPING and given else UNKNOWN

    def data(self, expression: cst.BaseExpression, steps: int = _MAX_STEPS) -> Dtypes:
        """Return the dtypes of an array that holds what an expression gives."""
        found = self._of_array(expression)
        if found is not None:
            return found
        if isinstance(expression, (cst.List, cst.Tuple)):
            items = [self.data(element.value, steps - 1) for element in expression.elements] if steps else []
            return frozenset[str | None]().union(*items) or UNKNOWN
        if isinstance(expression, cst.ListComp):
            return self.data(expression.elt, steps - 1) if steps else UNKNOWN
        bound = self._evaluator.flow.definitions(expression) if isinstance(expression, cst.Name) else []
        made = bound[0].part if len(bound) == 1 else None
        if steps and isinstance(made, (cst.List, cst.Tuple, cst.ListComp)):
            appended = [self.data(item, steps - 1) for item in self._evaluator.usage.appended(expression)]
            is_empty = isinstance(made, cst.List) and not made.elements
            start = frozenset[str | None]() if is_empty and appended else self.data(made, steps - 1)
            return start.union(*appended)
        return _IMAGES if self._is_image(expression, set()) else self._of_item(expression)

    def _of_item(self, item: cst.BaseExpression) -> Dtypes:
        if isinstance(item, cst.Comparison):
            return _TRUTHS
        value = literal(item)
        name = self._evaluator.names.qualified(item.func) if isinstance(item, cst.Call) else None
        return _FLOATS if isinstance(value, float) or name == "builtins.float" else UNKNOWN

    def _is_image(self, expression: cst.BaseExpression, seen: set[int]) -> bool:
        """Whether something was read from a file of an image: ``Image.open(path).convert("L")``."""
        if isinstance(expression, cst.Name):
            bindings = self._evaluator.flow.definitions(expression)
            new = [binding for binding in bindings if id(binding.node) not in seen]
            seen.update(id(binding.node) for binding in new)  # what an image is made of again is one if the rest is
            values = [binding.value if not binding.path else None for binding in new]
            return bool(bindings) and all(value is not None and self._is_image(value, seen) for value in values)
        if not isinstance(expression, cst.Call):
            return False
        if (self._evaluator.names.qualified(expression.func) or "").startswith(_OF_IMAGES):
            return True
        owner = expression.func.value if isinstance(expression.func, cst.Attribute) else None
        return owner is not None and self._is_image(owner, seen)


def combined(sides: list[Dtypes | None], operator: cst.BaseBinaryOp) -> Dtypes:
    """Return the dtypes of what two sides give, of which those that are None are no arrays."""
    known = frozenset[str | None]().union(*(side for side in sides if side is not None))
    if isinstance(operator, cst.Divide):
        if not known <= _FLOATS | _WHOLE | UNKNOWN:
            return OTHER
        return _FLOATS | OTHER if None in known else _FLOATS
    if known == _FLOATS:
        return known
    return UNKNOWN if known <= _WHOLE | UNKNOWN else OTHER
