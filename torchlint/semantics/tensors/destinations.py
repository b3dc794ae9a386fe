"""Where a fresh tensor goes: ``.to`` of one is given a device, a dtype or another tensor, and nothing else."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.evaluate import hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import OF_ARRAYS, TENSOR_ONLY
from torchlint.semantics.tensors.moves import Move, Moves
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import code, identifier, method_call

_OF_DEVICES = re.compile(r"(^|_)device(_(?!d?type)|$)", re.IGNORECASE)
# What neither a device nor a dtype is asked for.
_ASKED_OF_TENSORS = TENSOR_ONLY | OF_ARRAYS | {"clone", "data", "detach", "device", "dtype", "is_cuda", "new", "numel"}
_LONGEST = 40


class Destinations:
    """Recognises moves of what certainly is a tensor."""

    def __init__(self, evaluator: Evaluator, moves: Moves) -> None:
        self._evaluator = evaluator
        self._moves = moves

    def move(self, call: cst.Call) -> Move | None:
        """Return the move that a method call on a fresh tensor makes, also to where another tensor is."""
        found = self._moves.move(call)
        if found is not None or method_call(call, "to") is None or len(call.args) != 1 or call.args[0].star:
            return found
        argument = call.args[0]
        if argument.keyword is not None and argument.keyword.value != "other":
            return None
        return self._to_tensor(call, argument.value) or self._to_named(call, argument.value)

    def _to_tensor(self, call: cst.Call, other: cst.BaseExpression) -> Move | None:
        """``x.to(other)``: it also casts, so that nothing can be dropped."""
        if not self._is_tensor(other) or self._is_collated(call):
            return None
        value, text = self._evaluator.value(other), code(other)
        is_short = "\n" not in text and len(text) <= _LONGEST
        device, dtype = (f"{text}.device", f"{text}.dtype") if is_short else ("", "")
        return _made(call, value.device, device, dtype, other, Evidence.INFERRED, droppable=False)

    def _is_collated(self, call: cst.Call) -> bool:
        """Whether a call makes a part of a batch beside items of a dataset, which lie where those are: on the host."""
        definitions = self._evaluator.definitions
        function = definitions.enclosing_function(call)
        owner = definitions.owner(function) if function is not None else None
        is_dataset = owner is not None and definitions.class_kind(owner) is Kind.DATASET
        return function is not None and (is_dataset or "collat" in function.name.value)

    def _to_named(self, call: cst.Call, place: cst.BaseExpression) -> Move | None:
        """``x.to(self.device_in)``: what has such a name and no known value."""
        if not isinstance(place, (cst.Name, cst.Attribute)) or self._evaluator.value(place).known:
            return None
        if _OF_DEVICES.search(identifier(place)) is None or hints.names_host(identifier(place)):
            return None
        return _made(call, Device.EITHER, place, "", place, Evidence.NAMED, droppable=True)

    def _is_tensor(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression certainly is a tensor, by its value or by what the file asks of a variable."""
        value = self._evaluator.value(expression)
        if value.kind in (Kind.TENSOR, Kind.BATCH) and value.evidence >= Evidence.INFERRED:
            return True
        if value.known and not value.is_tensor:
            return False
        return not self._evaluator.usage.attributes(expression).isdisjoint(_ASKED_OF_TENSORS)


def _made(
    call: cst.Call,
    place: Device,
    device: str | cst.BaseExpression,
    dtype: str,
    named: cst.BaseExpression,
    evidence: Evidence,
    *,
    droppable: bool,
) -> Move:
    assert isinstance(call.func, cst.Attribute)
    return Move(call, call.func.value, "to", place, device, dtype, (named,), evidence, droppable)
