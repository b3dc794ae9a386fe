"""A NumPy array grows by concatenation in a loop, or each time a metric is updated.

## Why it costs

`np.append(x, y)` and `x = np.concatenate([x, y])` allocate a new array and copy everything that was collected so far:
n passes copy about n²/2 parts. `self.x = np.append(self.x, y)` in the `update` of a metric, or in a step of an
evaluation, does so from batch to batch. It is the host that copies, and the device waits only where the host is what
a pass takes its time for: that is why this rule is none of the default set, as TL211 is for tensors.

## What to write instead

Append to a list and call `np.concatenate` once after the loop. Where the loop needs the array in each pass, allocate
the final size once and write into slices of it.

## When to ignore it

The loop runs a few times only, the parts are small, or the final size is not known and each pass needs the whole.

Holds for all versions of NumPy; read in the documentation of `numpy.append` of NumPy 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.retention.growth import GROWING_ARRAYS

rule = Rule(
    code="TL221",
    name="array-grows-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a NumPy array that grows by `x = np.concatenate([x, ...])` or `np.append` in a loop",
    triggers=Triggers.all_of(
        ("numpy",), ("concatenate", "hstack", "vstack", "dstack", "row_stack", "column_stack", "append")
    ),
    examples=(
        Example(
            bad="""
import numpy as np
import torch

def features(model, loader):
    collected = np.zeros((0, 512))
    with torch.no_grad():
        for x in loader:
            collected = np.concatenate([collected, model(x).cpu().numpy()])
    return collected
""",
        ),
    ),
    references=("https://numpy.org/doc/stable/reference/generated/numpy.append.html",),
    documentation=__doc__,
    silences={
        "not-grown": "The result does not go back into the array that is concatenated.",
        "rebuilt": "Each pass makes the array anew or cuts it back, so that it does not grow from pass to pass.",
        "few-passes": "The loop runs over the layers of a module, the folds of a cross-validation or the keyword "
        "arguments of a function, a small constant number of times, or trains in a loop of its own with each pass.",
    },
)


@rule.check(cst.Call, called=GROWING_ARRAYS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a concatenation that feeds itself."""
    growth = model.growths.find(call)
    if growth is None or not growth.is_array:
        return
    if rule.silent("rebuilt", growth.rebuilt) or rule.silent("few-passes", growth.few_passes):
        return
    name = model.code(growth.variable)
    yield Finding(
        call,
        f"`{name}` grows by concatenation {growth.often}: every {'call' if growth.is_of_object else 'pass'} copies all "
        f"that was collected so far. {growth.advice('`numpy.concatenate`', 'an array')}.",
    )
