"""What subscripts take out of arrays: other arrays, unless it may be a single number."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tensors.array import Array
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal


class ArrayItems:
    """Tells what they are."""

    def __init__(self, evaluator: Evaluator, array: Callable[[cst.CSTNode], Array | None]) -> None:
        self._evaluator = evaluator
        self._array = array

    def of(self, subscript: cst.Subscript) -> Array | None:
        """Return what is known of the array that a subscript takes, None unless it certainly is one."""
        owner = self._array(subscript.value)
        if owner is None and self._is_found(subscript):
            return Array(dtypes=frozenset(("int64",)))
        if owner is None and len(subscript.slice) > 1 and any(isinstance(e.slice, cst.Slice) for e in subscript.slice):
            owner = self._holder_of(subscript.value)  # no single number can be cut by several axes
        if owner is None:
            return None
        if len(subscript.slice) == 1 and self._is_name(subscript.slice[0].slice):
            return owner._replace(owned=False, dtypes=frozenset((None,)), dimensions=1)
        left = owner.dimensions - len(subscript.slice)
        if left >= 1 and all(self._is_number(element.slice) for element in subscript.slice):
            return owner._replace(owned=False, dimensions=left)
        if not any(self._keeps_dimension(element.slice) for element in subscript.slice):
            return None
        chosen = any(self._chooses(element.slice) for element in subscript.slice)
        return owner._replace(owned=chosen, ordered=False, dimensions=1)

    def _holder_of(self, item: cst.BaseExpression) -> Array | None:
        """The array of which something is an item: ``signal`` of ``signal = signals[i]``."""
        if isinstance(item, cst.Name):
            bindings = self._evaluator.flow.definitions(item)
            made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
            return self._array(made.value) if isinstance(made, cst.Subscript) else None
        return self._array(item.value) if isinstance(item, cst.Subscript) else None

    @staticmethod
    def _is_name(index: cst.BaseSlice) -> bool:
        """Whether an index names an array of an archive, or a field: ``np.load(path)["signals"]``."""
        return isinstance(index, cst.Index) and isinstance(literal(index.value), str)

    def _is_found(self, subscript: cst.Subscript) -> bool:
        """Whether an expression is where something holds in an array: ``np.where(labels == 3)[0]``."""
        made = subscript.value if isinstance(subscript.value, cst.Call) else None
        index = subscript.slice[0].slice
        name = self._evaluator.names.qualified(made.func) if made is not None else None
        if made is None or len(made.args) != 1 or self._evaluator.value(made.args[0].value).is_tensor:
            return False  # NumPy leaves it to a tensor to search itself
        is_search = name in ("numpy.nonzero", "numpy.where")
        return is_search and isinstance(index, cst.Index) and isinstance(literal(index.value), int)

    def _is_number(self, index: cst.BaseSlice) -> bool:
        value = index.value if isinstance(index, cst.Index) else None
        return value is not None and self._evaluator.value(value).kind is Kind.NUMBER

    def _keeps_dimension(self, index: cst.BaseSlice) -> bool:
        if isinstance(index, cst.Slice):
            return True
        value = index.value if isinstance(index, cst.Index) else None
        if isinstance(value, cst.Ellipsis) or (isinstance(value, cst.Name) and value.value == "None"):
            return True  # nobody writes `x[..., 0]` for an array of one dimension
        return self._chooses(index)

    def _chooses(self, index: cst.BaseSlice) -> bool:
        """Whether an index chooses elements by a list, an array or a mask: NumPy copies them into other memory."""
        value = index.value if isinstance(index, cst.Index) else None
        return isinstance(value, (cst.List, cst.Comparison)) or (value is not None and self._array(value) is not None)
