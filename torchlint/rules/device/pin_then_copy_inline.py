"""A tensor is pinned in the training thread, only to be copied at once.

## Why it costs

`x.pin_memory()` allocates page-locked memory and copies the tensor into it while the program waits. A plain
`x.to(device)` does the same in small pieces through a buffer that CUDA keeps: with the allocation, the inline form is
often the slower one. It pays only if the pinned memory is used again, or if another thread pins.

## What to write instead

Let the loader pin: `DataLoader(..., pin_memory=True)` does it in a thread of its own, so that
`x.to(device, non_blocking=True)` finds pinned memory. Without a loader copy into a buffer that is pinned once:
`buffer = torch.empty(n, pin_memory=True)` before the loop, then `buffer.copy_(x)` and
`buffer.to(device, non_blocking=True)` in it, where nothing writes to the buffer before the copy is over. Or write
`x.to(device)`.

## When to ignore it

The copy is timed and hides behind work that was queued before, as in a loop that fetches the next batch while the
device computes.

Holds for all supported versions of torch; read in the tutorial on `pin_memory` and `non_blocking`, for torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.semantics.values import Device
from torchlint.syntax.calls import method_call

rule = Rule(
    code="TL220",
    name="pin-then-copy-inline",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a tensor is pinned in the training thread, only to be copied at once",
    triggers=Triggers.all_of("pin_memory", ("to", "cuda")),
    examples=(
        Example(
            bad="""
import torch

def train(model, arrays, optimizer):
    for array in arrays:
        x = torch.from_numpy(array).pin_memory().cuda(non_blocking=True)
        model(x).sum().backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "https://docs.pytorch.org/docs/stable/data.html#memory-pinning",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The tensor is not pinned in every step, or by a worker that loads data.",
        "kept": "The pinned tensor is kept, and may be copied again.",
        "not-moved": "What follows is no copy to a device.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a copy of a tensor that was pinned for it."""
    method = method_call(call, "to", "cuda")
    pinned = method_call(method.value, "pin_memory") if method is not None else None
    if method is None or pinned is None:
        return
    move = model.move(call)
    if rule.silent("not-moved", move is None or move.place is Device.CPU):
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA:
        return
    shown = model.shown(pinned.value, "the tensor")
    yield Finding(
        call,
        f"{shown} is copied into new pinned memory while the program waits, {heat.often}, and only then to the device. "
        "Pin in the loader (`pin_memory=True`) or copy through a buffer that is pinned once; a plain "
        f"`.{method.attr.value}(...)` is often faster than this.",
    )
