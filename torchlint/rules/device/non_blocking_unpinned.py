"""`non_blocking=True` copies from memory that is visibly not pinned.

## Why it costs

CUDA can only copy in the background from page-locked memory. From ordinary memory the copy goes through a staging
buffer, and the call returns when the last part of it has left the host's memory: next to nothing overlaps with it, and
the flag promises what it does not keep.

## What to write instead

Make the tensor in pinned memory where it is made once and copied often: `torch.empty(n, pin_memory=True)`,
`torch.zeros(n, pin_memory=True)`, or fill such a buffer. For batches set `pin_memory=True` in the loader, which pins
in a thread of its own. Do not write `x.pin_memory().to(device, non_blocking=True)` in the step: TL220 says why. Or make
the tensor on the device at once.

## When to ignore it

The flag does no harm. Batches of loaders that do not pin are TL102's, and tensors that are moved as soon as they are
made TL201's.

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
from torchlint.syntax.calls import literal, method_call

rule = Rule(
    code="TL218",
    name="non-blocking-unpinned",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="`non_blocking=True` from memory that is visibly not pinned",
    triggers=Triggers.all_of("non_blocking", ("to", "cuda")),
    examples=(
        Example(
            bad="""
import torch

def train(model, arrays, optimizer):
    for array in arrays:
        x = torch.from_numpy(array).cuda(non_blocking=True)
        model(x).sum().backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The copy is not made in every step.",
        "blocking": "`non_blocking` is not given, not `True`, or given by an expression.",
        "unknown": "Nothing says how the memory was made, or it is pinned: batches, parameters, results.",
        "to-host": "The copy goes to the host.",
        "moved": "The tensor is moved as soon as it is made and filled: TL201 reports that.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a copy that cannot overlap with anything."""
    method = method_call(call, "to", "cuda")
    if method is None or literal(model.arguments(call).get("non_blocking")) is not True:
        return
    if rule.silent("unknown", not model.pinned.is_pageable(method.value)):
        return
    move = model.move(call)
    if move is None or rule.silent("to-host", move.place is Device.CPU):
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA:
        return
    if rule.silent("moved", model.creations.ends_in(call)):
        return
    shown = model.shown(method.value, "the tensor")
    yield Finding(
        call,
        f"{shown} lies in memory that is not pinned: in spite of `non_blocking=True` the program waits while it is "
        f"read, {heat.often}. Copy from a buffer made with `pin_memory=True`, or make the tensor on the device.",
    )
