"""64-bit floats are computed with on an accelerator, in every step.

## Why it costs

Most GPUs have few units for 64-bit floats: those for games compute with them at a thirty-second or a sixty-fourth of
the speed of 32-bit ones, tensor cores of most data-centre GPUs not at all, and Apple's GPUs refuse them. The memory
traffic doubles everywhere. Arrays of NumPy are 64 bits wide unless they are told otherwise, and stay so on the way to
the device.

## What to write instead

`torch.float32`, which is the default: `torch.from_numpy(array).float().to(device)` or
`torch.as_tensor(array, dtype=torch.float32)` for arrays, and no `.double()`. Where a sum needs the precision, sum with
it and leave the rest: `x.sum(dtype=torch.float64)`.

## When to ignore it

The computation needs the precision: physics, solvers, long sums, checks of gradients. There is no fix for that reason.

What is added up at once (`x.double().sum()`) is not reported, nor are tensors that are not known to be on an
accelerator. Holds for all supported versions of torch; read in NVIDIA's programming guide and the documentation of
torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.semantics.tensors.float64 import WIDENING

rule = Rule(
    code="TL215",
    name="float64-on-gpu",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="64-bit floats are computed with on an accelerator, in every step",
    triggers=Triggers.all_of(("double", "float64", "from_numpy", "as_tensor", "tensor"), ("cuda", "device", "to")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = (model(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True).double()).square().mean()
        loss.backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions",
        "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The code does not run in every step.",
        "not-on-device": "The tensor is not known to be on an accelerator.",
        "narrow": "The tensor has another dtype, or becomes one of another dtype at once.",
        "summed": "The numbers are added up at once, or compared by a test: the precision is the point.",
        "unknown-dtype": "Nothing says that the array holds 64-bit floats.",
    },
)


@rule.check(cst.Call, called=WIDENING)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a tensor of 64-bit floats on an accelerator."""
    why = model.float64.why(call)
    if why is None or rule.silent("summed", model.float64.is_summed(call)):
        return
    if rule.silent("narrow", model.float64.is_narrowed(call)):
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA or model.in_test(call):
        return
    shown = model.shown(call, f"`{model.code(call.func)}(...)`")
    yield Finding(
        call,
        f"{shown} {why} {heat.often}. Most GPUs compute with them at a small part of the speed of 32-bit ones. Use "
        "`torch.float32`, unless the precision is needed.",
    )
