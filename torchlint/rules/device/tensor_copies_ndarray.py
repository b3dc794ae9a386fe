"""`torch.tensor(array)` copies a NumPy array that a tensor could share.

## Why it costs

`torch.tensor` always copies its data. `torch.as_tensor(array)` and `torch.from_numpy(array)` make a tensor of the
same dtype that uses the memory of the array: nothing is allocated and nothing is copied, however large the array is.

## What to write instead

`torch.as_tensor(array)`; with a dtype, `torch.as_tensor(array, dtype=torch.float32)` copies only where the array has
another.

The fix is unsafe, because writing to the array afterwards also changes the tensor, and the other way round, and a
tensor of every second column, say, is not contiguous, so that `view` refuses it. It is safe where the array is a fresh
temporary that nobody else holds, such as `torch.tensor(np.zeros(n))`, in a file that resizes no tensors: the memory of
an array cannot grow.

## When to ignore it

The array is written to later and the tensor must keep the old values: then the copy is the point, and
`torch.from_numpy(array).clone()` says so. With `device=` or a dtype that converts, a copy is made anyway: the rule is
silent. An array whose dtype cannot be seen may hold what NumPy makes of numbers, so that `dtype=torch.long` and
`torch.double` convert nothing. Columns of a data frame are arrays too, but pandas 3 gives them read-only, and
`torch.as_tensor` warns of that: there is no fix for them, and a tensor that is written to needs its copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables.arrays import LIBRARIES
from torchlint.semantics.tables.torch_api import NDARRAY_DTYPES
from torchlint.semantics.values import Device

if TYPE_CHECKING:
    from torchlint.semantics.tensors.array import Array

_MADE_BY_NUMPY = ("int64", "float64")
"""What arrays of numbers hold unless something else is asked for."""
_SHORT = 60
"""How many characters of arguments a message shows."""

rule = Rule(
    code="TL208",
    name="tensor-copies-ndarray",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="`torch.tensor(array)` copies an array that a tensor could share",
    triggers=Triggers.all_of("tensor", ("numpy", "astype", "to_numpy", "pandas", *LIBRARIES)),
    examples=(
        Example(
            bad="import numpy as np\nimport torch\n\ngrid = torch.tensor(np.zeros((4, 4)))\n",
            good="import numpy as np\nimport torch\n\ngrid = torch.as_tensor(np.zeros((4, 4)))\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.tensor.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.as_tensor.html",
    ),
    documentation=__doc__,
    silences={
        "no-array": "The data is a list, a number, or nothing that is certainly an array.",
        "device": "A device is given: the data is copied to it anyway.",
        "converted": "A dtype is given that the array does not have, or may not have.",
        "moved": "The tensor is moved to a device at once: TL201 reports that, and its fix avoids this copy too.",
        "written": "The array is written to after it was copied, or the copy is before the array is read again.",
        "gradient": "`requires_grad` or `pin_memory` is given: the tensor needs memory of its own.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    asks_project=True,
)


@rule.check(cst.Call, called=("tensor",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a tensor that copies an array."""
    if model.callee(call) != "torch.tensor":
        return
    given = model.arguments(call)
    data = given.get("data")
    array = model.arrays.array(data) if data is not None else None
    if data is None or array is None or given.open:
        return
    if rule.silent("device", given.get("device") is not None):
        return
    if rule.silent("gradient", bool({"requires_grad", "pin_memory"} & given.named.keys())):
        return
    if rule.silent("converted", _is_converted(given.get("dtype"), array, model)):
        return
    if rule.silent("moved", _is_moved(call, model)):
        return
    arrays, writes = model.arrays, model.writes
    is_needed = writes.keeps_apart(data, call, is_own=arrays.is_own(data))
    if rule.silent("written", is_needed or (writes.is_stored(call) and arrays.is_of_caller(data))):
        return
    yield Finding(
        call,
        f"`{model.code(call.func)}` copies {model.shown(data, 'the array')}: new memory is allocated, and every number "
        f"is read and written once more. Write `torch.as_tensor({_given(call, model)})`, which uses the memory of the "
        "array.",
        _fix(call, array, model),
    )


def _given(call: cst.Call, model: Model) -> str:
    """What is given, as it is to be given again: the array, and the dtype where there is one."""
    names = (f"{argument.keyword.value}=" if argument.keyword else "" for argument in call.args)
    given = ", ".join(f"{name}{model.code(argument.value)}" for name, argument in zip(names, call.args, strict=True))
    return given if len(given) <= _SHORT and "\n" not in given else "..."


def _is_converted(dtype: cst.BaseExpression | None, array: Array, model: Model) -> bool:
    """Whether a dtype is given that the array does not have: one that is not known has those that NumPy makes."""
    if dtype is None:
        return False
    wanted = NDARRAY_DTYPES.get(model.qualified_name(dtype) or "")
    return wanted not in array.dtypes - {None} and not (None in array.dtypes and wanted in _MADE_BY_NUMPY)


def _is_moved(call: cst.Call, model: Model) -> bool:
    found = model.creation(call)
    return found is not None and (found.move is None or found.move.place is not Device.CPU)


def _fix(call: cst.Call, array: Array, model: Model) -> Fix | None:
    name = model.spelling("torch.as_tensor", call)
    if name is None or model.is_partial(call) or not array.writable:
        return None
    why = ""
    if not (array.owned and array.ordered and array.evidence is Evidence.PROVEN):
        why = (
            "The tensor shares the memory of the array: writing to one changes the other, and a part of an array that "
            "is not contiguous stays so."
        )
    elif _resizes(model):
        why = "The memory of an array cannot grow, and something in this file resizes tensors."
    return Fix(
        "Use `torch.as_tensor`",
        (Replace(call.func, name),),
        Safety.UNSAFE if why else Safety.SAFE,
        why,
        array.evidence,
    )


def _resizes(model: Model) -> bool:
    """Whether the file resizes tensors, itself or by letting torch write results into them."""
    return model.speaks_of("resize_", "resize_as_") or any(
        (model.qualified_name(call.func) or "").startswith("torch.") and not model.arguments(call).absent("out")
        for call in model.nodes(cst.Call)
    )
