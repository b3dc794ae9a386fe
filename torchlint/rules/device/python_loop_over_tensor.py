"""A Python loop computes with one element of a tensor at a time.

## Why it costs

Each pass starts a kernel for each operation on a single element: a thousand elements cost a thousand times the launch
of a kernel, about ten microseconds of the host's time each, while the GPU has next to nothing to do. Autograd records
each of them too.

## What to write instead

The same expression on the whole tensor: `y = x * 2 + z` instead of `y[i] = x[i] * 2 + z[i]` in a loop, and
`(x * weights).sum()` (or `.sum(0)`, which adds up rows) instead of `total += x[i] * weights[i]`.

Only loops are reported whose single statement stores, appends or adds up what it computes element by element. Where a
pass reads an element as a number, TL202 and TL204 report that.

## When to ignore it

The tensor has a handful of elements, or sums have to be rounded in that very order.

Holds for all supported versions of torch; read in the performance tuning guide for torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model

rule = Rule(
    code="TL216",
    name="python-loop-over-tensor",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a Python loop computes with one element of a tensor at a time",
    triggers=Triggers.all_of("torch"),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

class Gate(nn.Module):
    def forward(self, x: torch.Tensor):
        y = torch.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = torch.sigmoid(x[i]) * 2
        return y
""",
        ),
    ),
    references=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",),
    documentation=__doc__,
    silences={
        "not-hot": "The loop does not run in every step.",
        "no-tensor": "What the loop runs over is no tensor, or one that is known to be on the CPU.",
        "more": "A pass does more than one thing, or something that is not done element by element.",
        "recurrent": "A pass needs the result of another one, or an element at another place.",
        "copied": "A pass only copies an element.",
    },
)


@rule.check(cst.For)
def check(loop: cst.For, model: Model) -> Iterator[Finding]:
    """Report a loop that one expression on the whole tensor replaces."""
    found = model.elementwise.find(loop)
    if found is None:
        return
    heat = model.heat(loop)
    if heat is None or heat.role is Role.DATA:
        return
    if not model.may_be_on_accelerator(model.value(found.tensor), heat):
        return
    tensor, result = model.code(found.tensor), model.code(found.result)
    advice = (
        f"add up the whole expression at once with `.sum(0)` and add that to `{result}`"
        if found.adds
        else f"compute all of `{result}` with the same expression on the whole tensors"
    )
    yield Finding(
        loop,
        f"Each pass of this loop computes with one element of `{tensor}`, {heat.often}: every operation is a kernel of "
        f"its own. Drop the loop and {advice}.",
    )
