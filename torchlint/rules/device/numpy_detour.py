"""NumPy makes an array that torch only takes over, though torch has the same factory.

## Why it costs

`torch.from_numpy(np.zeros(n))` asks another library for memory that torch's own allocator would have had ready. NumPy
makes 64-bit floats unless it is told otherwise: twice the memory of torch's default, and slow on most GPUs. The array
lies on the host, so that a device costs a copy, and `.astype(np.float32)` makes a second array to convert the first.

## What to write instead

The factory of torch, with the dtype written out: `torch.zeros(n, dtype=torch.float64)`; or, where nothing needs 64
bits, `torch.zeros(n)`. It takes `device=` too.

The fix keeps the dtype that the array had. It is safe for `zeros`, `ones`, `empty`, `eye`, `identity` and `full` where
the sizes are written out and the number is one that both round alike. It is unsafe for other sizes (they may be
something that only NumPy takes, or 0: an array without elements has other strides than a tensor), and for random
numbers: the generator of torch draws others than NumPy's. Where the arguments of the two differ,
or the file makes a device the default of a block, there is no fix; a default device that another file sets is not seen.

## When to ignore it

Random numbers that have to be those of an older run, or of another program that uses NumPy's generator.
`torch.tensor(array)` without a dtype is TL208's, and what is moved to a device at once TL201's.

Holds for all supported versions of torch and for NumPy 1 and 2; read in the documentation of torch 2.13 and NumPy 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, RemoveArgument, Replace, Unwrap
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import LEGACY_CONSTRUCTORS, NDARRAY_DTYPES
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.tensors.numpy_detours import Detour

rule = Rule(
    code="TL209",
    name="numpy-detour",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="NumPy makes an array that torch could make itself",
    triggers=Triggers.all_of(
        frozenset(("from_numpy", "as_tensor", "tensor", *(n.rpartition(".")[2] for n in LEGACY_CONSTRUCTORS))),
        "numpy",
        frozenset("zeros ones empty full eye identity arange linspace rand randn randint permutation".split()),
    ),
    examples=(
        Example(
            bad="import numpy as np\nimport torch\n\nmask = torch.from_numpy(np.zeros((8, 8), dtype=np.float32))\n",
            good="import torch\n\nmask = torch.zeros((8, 8), dtype=torch.float32)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html",
        "https://docs.pytorch.org/docs/stable/torch.html#creation-ops",
        "https://numpy.org/doc/stable/reference/routines.array-creation.html",
    ),
    documentation=__doc__,
    silences={
        "not-fresh": "The array is not made by one of NumPy's factories at the place where torch takes it over.",
        "number": "NumPy gives a number, not an array.",
        "copied": "`torch.tensor` copies the array: TL208 reports that.",
        "moved": "The tensor is moved to a device at once: TL201 reports that.",
        "asked": "Only the dtype or the shape of the tensor is asked for.",
        "default-device": "The file sets a default device, on which factories work.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    yields_to=("TL208",),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a tensor that NumPy makes."""
    found = model.numpy_detours.find(call)
    if found is None:
        return
    if rule.silent("copied", _is_copied(call, model)) or rule.silent("moved", _is_moved(call, model)):
        return
    parent = model.parent(call)
    if rule.silent("asked", isinstance(parent, cst.Attribute) and parent.attr.value in ("dtype", "shape")):
        return
    if rule.silent("default-device", model.on_default_device(call) or model.device_context(call)):
        return
    made = model.shown(found.made, f"`{model.code(found.made.func)}(...)`")
    yield Finding(
        call,
        f"{made} makes an array on the host that `{model.code(call.func)}` only takes over. "
        f"`{found.factory}` makes the tensor itself, with that dtype and on any device.",
        _fix(call, found, model),
    )


def _in_context(model: Model) -> bool:
    """Whether factories work on another device somewhere in the file, which may be where this one is called."""
    return any(model.value(item.item).kind is Kind.DEVICE for item in model.nodes(cst.WithItem))


def _is_copied(call: cst.Call, model: Model) -> bool:
    """Whether TL208 reports that the array is copied: no device, no other dtype, no memory of its own."""
    given = model.arguments(call)
    if model.callee(call) != "torch.tensor" or {"device", "requires_grad", "pin_memory"} & given.named.keys():
        return False
    array, dtype = model.arrays.array(given.named["data"]), given.get("dtype")
    if dtype is None or array is None:
        return array is not None
    return NDARRAY_DTYPES.get(model.qualified_name(dtype) or "") in array.dtypes - {None}


def _is_moved(call: cst.Call, model: Model) -> bool:
    return model.callee(call) in {"torch.tensor", *LEGACY_CONSTRUCTORS} and model.creation(call) is not None


def _fix(call: cst.Call, found: Detour, model: Model) -> Fix | None:
    factory = model.spelling(found.factory, call)
    dtype = model.spelling(found.dtype, call) if found.dtype else ""
    if not found.takes_over or factory is None or dtype is None or model.is_partial(call) or _in_context(model):
        return None
    options = [(option.keyword.value, model.code(option.value)) for option in found.options if option.keyword]
    edits: list[Edit] = [Unwrap(call, found.made), Replace(found.made.func, factory)]
    edits += [RemoveArgument(found.made, argument) for argument in found.dropped]
    edits += [AddKeyword(found.made, *each) for each in ([("dtype", dtype)] if dtype else []) + options]
    why = ""
    if found.random:
        why = "The generator of torch draws other numbers than NumPy's."
    elif not found.exact:
        why = (
            "NumPy may take arguments that torch refuses or rounds otherwise, and without elements the strides differ."
        )
    elif model.speaks_of("share_memory_", "share_memory"):
        why = "When its tensor moves into shared memory an array goes on, and what torch made does not."
    return Fix(
        f"Use `{found.factory}`",
        tuple(edits),
        Safety.UNSAFE if why else Safety.SAFE,
        why,
    )
