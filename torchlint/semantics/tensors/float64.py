"""Tensors of 64-bit floats on an accelerator."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.tables.torch_api import DTYPE_CASTS, FACTORIES, LIKE_FACTORIES
from torchlint.semantics.tensors.arrays import Arrays
from torchlint.semantics.tensors.moves import Moves
from torchlint.semantics.values import Device
from torchlint.syntax.calls import bind, method_call

_WIDE = ("torch.float64", "torch.double")
_TAKERS = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
_SUMS = frozenset("sum mean cumsum cumprod prod norm var std item cpu tolist numpy logsumexp".split())
WIDENING = FACTORIES | LIKE_FACTORIES | {"double", "to", "type", "cuda"}
"""The functions and methods by which 64-bit floats come to be on a device."""

_ACCELERATORS = (Device.ACCELERATOR, Device.EITHER)


class Float64Tensors:
    """Recognises them."""

    def __init__(self, evaluator: Evaluator, arrays: Arrays, moves: Moves) -> None:
        self._evaluator = evaluator
        self._arrays = arrays
        self._moves = moves

    def why(self, call: cst.Call) -> str | None:
        """Return in words how a call puts 64-bit floats on an accelerator, None if it is not certain that it does."""
        name = self._evaluator.names.qualified(call.func)
        if name in FACTORIES or name in LIKE_FACTORIES:
            return "makes 64-bit floats on the device" if self._is_made_wide(call) else None
        if name is not None or not isinstance(call.func, cst.Attribute):
            return None
        if self._casts(call, call.func) and self._is_there(call.func.value):
            return "turns them into 64-bit floats on the device"
        return "copies 64-bit floats to the device" if self._carries(call) else None

    def _is_made_wide(self, call: cst.Call) -> bool:
        given = bind(call.args)
        dtype, device = given.get("dtype"), given.get("device")
        if dtype is None or device is None or self._evaluator.value(dtype).name not in _WIDE:
            return False
        if isinstance(device, cst.Attribute):
            return self._is_there(device.value)
        return self._moves.leaves_host(device, None)

    def _casts(self, call: cst.Call, method: cst.Attribute) -> bool:
        """Whether a method turns a tensor into one of 64-bit floats: ``double``, ``to(torch.float64)``."""
        if method.attr.value == "double":
            return not call.args
        if method.attr.value not in ("to", "type") or len(call.args) != 1:
            return False
        return self._evaluator.value(call.args[0].value).name in _WIDE

    def _is_there(self, tensor: cst.BaseExpression) -> bool:
        value = self._evaluator.value(tensor)
        is_known = value.is_tensor and value.evidence >= Evidence.INFERRED and value.device in _ACCELERATORS
        return is_known and value.dtype not in _WIDE

    def _carries(self, call: cst.Call) -> bool:
        """Whether a move takes an array of 64-bit floats along: ``torch.from_numpy(np.zeros(3)).cuda()``."""
        method = method_call(call, "to", "cuda")
        taker = method.value if method is not None else None
        if not isinstance(taker, cst.Call) or self._evaluator.names.qualified(taker.func) not in _TAKERS:
            return False
        if len(taker.args) != 1:
            return False
        array = self._arrays.array(taker.args[0].value)
        move = self._moves.move(call) if array is not None and array.dtypes == {"float64"} else None
        return move is not None and move.place in _ACCELERATORS and not move.dtype

    def is_summed(self, call: cst.Call) -> bool:
        """Return whether what a call gives is added up, or brought to the host, at once."""
        parent = self._evaluator.tree.parent(call)
        if self._is_added(call):
            return True
        if isinstance(parent, cst.Attribute):
            return parent.attr.value in _SUMS
        around = self._evaluator.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        name = self._evaluator.names.qualified(around.func) if isinstance(around, cst.Call) else None
        return (name or "").rpartition(".")[2] in _SUMS

    def _is_added(self, call: cst.Call) -> bool:
        """Whether a total grows by what a call gives, or by a multiple of it: ``total += x.double() * n``."""
        parent = self._evaluator.tree.parent(call)
        while isinstance(parent, cst.BinaryOperation):
            parent = self._evaluator.tree.parent(parent)
        return isinstance(parent, cst.AugAssign) and isinstance(parent.operator, (cst.AddAssign, cst.SubtractAssign))

    def is_narrowed(self, call: cst.Call) -> bool:
        """Return whether what a call gives is cast again at once."""
        parent = self._evaluator.tree.parent(call)
        return isinstance(parent, cst.Attribute) and parent.attr.value in (DTYPE_CASTS.keys() | {"to", "type"})
