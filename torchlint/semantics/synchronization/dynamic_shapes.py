"""Operations on tensors whose results have as many elements as the values say."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import bind, identifier, method_call

_FUNCTIONS = {
    **{
        f"torch.{name}": name
        for name in "nonzero argwhere where masked_select unique unique_consecutive bincount repeat_interleave".split()
    },
    "torch.nn.functional.one_hot": "one_hot",
}
_METHODS = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave")
UNBOUNDED = frozenset(_FUNCTIONS.values())
"""The names of these functions and methods."""

_MASKS: frozenset[type] = frozenset((cst.Call, cst.Comparison, cst.UnaryOperation, cst.BinaryOperation))
_BOOLEAN = (
    "eq", "ne", "lt", "le", "gt", "ge", "bool", "isnan", "isinf", "isfinite",
    "logical_and", "logical_or", "logical_not",
)  # fmt: skip
_SIZED = {"one_hot": ("num_classes", 1), "repeat_interleave": ("output_size", 9)}


class DynamicShapes:
    """Recognises them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @cached_property
    def _boolean_names(self) -> frozenset[str]:
        """The names of variables to which something that looks like booleans is assigned."""
        tree = self._evaluator.tree
        found: list[cst.BaseExpression] = [
            target.target
            for assign in tree.nodes(cst.Assign)
            if assign.value.__class__ in _MASKS and _looks_boolean(assign.value)
            for target in assign.targets
        ]
        others: list[cst.AnnAssign | cst.AugAssign | cst.NamedExpr] = [
            *tree.nodes(cst.AnnAssign),
            *tree.nodes(cst.AugAssign),
            *tree.nodes(cst.NamedExpr),
        ]
        found += [other.target for other in others if other.value is not None and _looks_boolean(other.value)]
        return frozenset(target.value for target in found if isinstance(target, cst.Name))

    def called(self, call: cst.Call) -> tuple[str, cst.BaseExpression] | None:
        """Return the name of such an operation and the tensor whose values count, None for anything else."""
        if identifier(call.func) not in UNBOUNDED and not isinstance(call.func, cst.Name):
            return None
        name = self._evaluator.names.qualified(call.func)
        if name is not None:
            given = bind(call.args, ("input", "second"))
            last = _FUNCTIONS.get(name)
            tensor = given.named.get("input", given.named.get("condition"))
            if last == "repeat_interleave":
                tensor = given.named.get("repeats", given.named.get("second"))
            return (last, tensor) if last is not None and tensor is not None and not given.open else None
        method = method_call(call, *_METHODS)
        if method is None:
            return None
        tensor = method.value
        if method.attr.value == "repeat_interleave":
            repeats = bind(call.args, ("repeats",)).get("repeats")
            return (method.attr.value, repeats) if repeats is not None else None
        return method.attr.value, tensor

    def is_bounded(self, call: cst.Call, name: str) -> bool:
        """Return whether a call is told how many elements there will be."""
        if name == "where":
            return len(call.args) != 1
        keyword, position = _SIZED.get(name, ("", 9))
        plain = [argument for argument in call.args if argument.keyword is None]
        return len(plain) > position or any(a.keyword is not None and a.keyword.value == keyword for a in call.args)

    def mask(self, subscript: cst.Subscript) -> cst.BaseExpression | None:
        """Return the mask of booleans by which elements of a tensor are taken."""
        for element in subscript.slice:
            index = element.slice.value if isinstance(element.slice, cst.Index) else None
            if index is None or not self._may_be_mask(index):
                continue
            value = self._evaluator.value(index)
            if value.is_tensor and value.dtype == "torch.bool":
                owner = self._evaluator.value(subscript.value)
                return index if owner.is_tensor or owner.kind is Kind.BATCH else None
        return None

    def _may_be_mask(self, index: cst.BaseExpression) -> bool:
        """Whether an index looks like booleans, here or where its variable got its value: asked before all else."""
        if isinstance(index, cst.Name):
            if index.value not in self._boolean_names:
                return False
            bindings = self._evaluator.flow.definitions(index)
            return any(b.value is not None and _looks_boolean(b.value) for b in bindings)
        return _looks_boolean(index)

    def is_stored(self, subscript: cst.Subscript) -> bool:
        """Return whether something is assigned to what a subscript takes."""
        parent = self._evaluator.tree.parent(subscript)
        if isinstance(parent, cst.AugAssign):
            return parent.target is subscript
        return isinstance(parent, (cst.AssignTarget, cst.Del, cst.Element))

    def is_on_accelerator(self, tensor: cst.BaseExpression) -> bool:
        """Return whether a tensor is known to be on an accelerator, or where one is if there is one."""
        value = self._evaluator.value(tensor)
        return (
            value.is_tensor
            and value.evidence >= Evidence.INFERRED
            and value.device in (Device.ACCELERATOR, Device.EITHER)
        )


def _looks_boolean(expression: cst.BaseExpression) -> bool:
    if isinstance(expression, cst.Call):
        return method_call(expression, *_BOOLEAN) is not None
    if isinstance(expression, cst.UnaryOperation):
        return isinstance(expression.operator, cst.BitInvert)
    if isinstance(expression, cst.BinaryOperation):
        return isinstance(expression.operator, (cst.BitAnd, cst.BitOr, cst.BitXor))
    return isinstance(expression, cst.Comparison)
