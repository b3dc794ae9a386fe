"""A tensor is made by a legacy CUDA type such as `torch.cuda.FloatTensor`.

## Why it costs

`torch.cuda.FloatTensor(data)` builds the tensor on the host and copies it to the device, and its argument decides
what it does: a number is a size whose memory is not initialised, a sequence is data. The types cannot be used for
another device, so that scripts choose between two of them at run time.
`torch.set_default_tensor_type(torch.cuda.FloatTensor)` moves everything that is created anywhere to the GPU; it is
deprecated since torch 2.1.

## What to write instead

`torch.tensor(data, dtype=torch.float32, device="cuda")` for data, `torch.empty(size, dtype=.., device=..)` for
memory, `torch.zeros(size, device=..)` where it is filled with zeros next. For `x.type(Tensor)` write `x.to(device)`.
Instead of a default tensor type pass `device=`, or use `torch.set_default_device("cuda")` (torch 2.0).

The fix writes what a constructor of numbers or sizes does. It is safe where the arguments are written out, unsafe
where their kind is only likely.

## When to ignore it

The code must run on a torch older than 0.4.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword
from torchlint.edits.placing import modernise
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import CUDA_CONSTRUCTORS
from torchlint.semantics.values import Device

_DEFAULT_TYPE = "torch.set_default_tensor_type"

rule = Rule(
    code="TL214",
    name="legacy-cuda-tensor-type",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="a legacy CUDA tensor type is used to make tensors",
    triggers=Triggers.all_of(frozenset(name.rpartition(".")[2] for name in CUDA_CONSTRUCTORS)),
    examples=(
        Example(
            bad="import torch\n\nweights = torch.cuda.FloatTensor([0.5, 0.5])\n",
            good='import torch\n\nweights = torch.tensor([0.5, 0.5], dtype=torch.float32, device="cuda")\n',
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/tensors.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.set_default_tensor_type.html",
    ),
    documentation=__doc__,
    silences={
        "host-type": "The type is one of the CPU.",
        "not-called": "The type is compared with, passed on or annotated with: no tensor is made.",
        "other-name": "The name means something else here.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a tensor made by a CUDA type, and a default tensor type on the GPU."""
    if model.qualified_name(call.func) == _DEFAULT_TYPE:
        yield from _default_type(call, model)
        return
    made = model.tensor_type(call.func)
    if made is None or rule.silent("host-type", made.place is Device.CPU):
        return
    yield Finding(call, _message(call, made.dtype or "...", model), _fix(call, model))


def _message(call: cst.Call, dtype: str, model: Model) -> str:
    """Return what the constructor does with its arguments where these show it, and what does the same."""
    shown, modern = model.code(call.func), model.constructors.modern(call)
    if modern is None:
        return (
            f"`{shown}` is a legacy CUDA tensor type: of data it makes a tensor on the host and copies it, of a number "
            f"one without values, and always for CUDA. Write `torch.tensor(data, dtype={dtype}, device=...)` for data "
            f"or `torch.empty(size, dtype={dtype}, device=...)` for memory."
        )
    does = "allocates memory" if modern.factory == "torch.empty" else "copies data from the host"
    return (
        f"`{shown}(...)` {does} by a legacy CUDA tensor type, which tells sizes from data by their looks and knows no "
        f"other device. Write `{modern.factory}(..., dtype={dtype}, device=...)`."
    )


def _default_type(call: cst.Call, model: Model) -> Iterator[Finding]:
    made = model.tensor_type(call.args[0].value) if call.args else None
    if made is None or rule.silent("host-type", made.place is Device.CPU):
        return
    yield Finding(
        call,
        f"`{model.code(call)}` puts every tensor that is made without a device on the GPU, and is deprecated since "
        'torch 2.1. Pass `device=` where tensors are made, or use `torch.set_default_device("cuda")`.',
    )


def _fix(call: cst.Call, model: Model) -> Fix | None:
    if model.qualified_name(call.func) not in CUDA_CONSTRUCTORS:
        return None
    modern = modernise(call, model)
    if modern is None:
        return None
    is_safe = modern.exact and modern.evidence is Evidence.PROVEN
    return Fix(
        "Make the tensor with a factory, a dtype and a device",
        (*modern.edits, AddKeyword(call, "device", '"cuda"')),
        Safety.SAFE if is_safe else Safety.UNSAFE,
        "" if is_safe else "The kind of the argument is what this file suggests, not certain.",
        modern.evidence,
    )
