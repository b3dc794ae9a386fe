"""A tensor grows by concatenation in a loop.

## Why it costs

`x = torch.cat([x, y])` allocates a new tensor and copies everything that was collected so far: n passes copy n²/2 elements, and
each pass needs a larger block of memory, which fragments the cache.

## What to write instead

Append to a list and call `torch.cat` once after the loop; where the final size is known, allocate it once and write into slices
(a static cache for decoding). There is no automatic fix where the loop reads the tensor.

## When to ignore it

The loop runs a few times only.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

_JOINS = frozenset(("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack", "torch.stack"))

rule = Rule(
    code="TL211",
    name="cat-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a tensor that grows by `x = torch.cat([x, ...])` in a loop",
    triggers=Triggers.all_of(("cat", "concat", "concatenate", "hstack", "vstack", "stack")),
    examples=(
        Example(
            bad="""
import torch

def features(model, loader):
    collected = torch.empty(0)
    with torch.no_grad():
        for x in loader:
            collected = torch.cat([collected, model(x)])
    return collected
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.cat.html",),
    documentation=__doc__,
    silences={
        "not-grown": "The result does not go back into the tensor that is concatenated.",
        "rebuilt": "The tensor is made anew in each pass before it is concatenated.",
        "few-passes": "The loop runs over the layers of a module, or a small constant number of times.",
        "window": "A slice of the tensor is kept: its size does not grow.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a concatenation that feeds itself."""
    if model.callee(call) not in _JOINS:
        return
    growth = model.retentions.growth(call)
    if growth is None or rule.silent("few-passes", growth.few_passes):
        return
    name = model.code(growth.variable)
    yield Finding(
        call,
        f"`{name}` grows by concatenation in this loop: every pass copies all that was collected so far. Append to a list and "
        f"concatenate once after the loop, or write into a tensor of the final size.",
    )
