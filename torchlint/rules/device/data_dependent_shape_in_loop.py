"""The shape of a result depends on the values of a tensor on the device, in every step.

## Why it costs

`nonzero`, `unique`, `x[mask]` and the like can only allocate their result when it is known how many elements there are:
the program waits until the device has computed everything that was queued before, and reads that number. Nothing says
so in the code. `torch.compile` breaks the graph there, too.

## What to write instead

Keep the shape: `torch.where(mask, x, 0)` and `(loss * mask).sum() / mask.sum()` instead of `loss[mask].mean()`.
`F.one_hot(y, num_classes=n)` and `repeat_interleave(.., output_size=n)` with a size that is known on the host wait for
nothing. Where indices are needed for several tensors compute them once.

## When to ignore it

The number of elements varies so much that work on all of them costs more than the wait; assignment detection targets to
anchors is an example.

Assignments of a number (`x[mask] = 0`) do not wait and are never reported, nor are tensors that are not known to be on
an accelerator. Holds for all supported versions of torch; read in the sources and the documentation of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.synchronization.dynamic_shapes import UNBOUNDED

_KEEP = "Keep the shape with a mask (`torch.where`, a product), or compute the indices once."
_ADVICE = {
    "nonzero": _KEEP,
    "argwhere": _KEEP,
    "where": "With three arguments it keeps the shape.",
    "masked_select": _KEEP,
    "unique": "Count with a fixed number of bins (`scatter_add_`) where the values are bounded.",
    "unique_consecutive": "Count with a fixed number of bins (`scatter_add_`) where the values are bounded.",
    "bincount": "Add up with `torch.zeros(n).scatter_add_(0, x, ones)` where the number of bins is known.",
    "one_hot": "Pass `num_classes`.",
    "repeat_interleave": "Pass `output_size`.",
}

rule = Rule(
    code="TL212",
    name="data-dependent-shape-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="the shape of a result depends on values on the device, in every step: a hidden synchronisation",
    triggers=Triggers.all_of("torch", ("cuda", "device", "to")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        y = y.cuda(non_blocking=True)
        losses = model(x.cuda(non_blocking=True)) - y
        losses[y > 0].mean().backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The code does not run in every step.",
        "not-on-device": "The tensor is not known to be on an accelerator.",
        "known-size": "The size is given: `num_classes`, `output_size`, three arguments of `where`.",
        "read": "The result is read as a number at once: TL202 reports that.",
        "no-mask": "The index is not known to be a tensor of booleans.",
        "stored": "Something is assigned through the mask.",
    },
)


@rule.check(cst.Call, called=UNBOUNDED)
def check_call(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a function whose result has as many elements as the values say."""
    found = model.dynamic_shapes.called(call)
    if found is None or model.accelerator is None:
        return
    name, tensor = found
    if rule.silent("known-size", model.dynamic_shapes.is_bounded(call, name)):
        return
    parent = model.parent(call)
    if rule.silent("read", isinstance(parent, cst.Attribute) and parent.attr.value == "item"):
        return
    heat = _hot(call, tensor, model)
    if heat is not None:
        yield Finding(
            call,
            f"How many elements `{name}` gives depends on values on the device: the program waits for them, "
            f"{heat.often}. {_ADVICE[name]}",
        )


@rule.check(cst.Subscript)
def check_mask(subscript: cst.Subscript, model: Model) -> Iterator[Finding]:
    """Report a tensor from which a mask takes elements."""
    mask = model.dynamic_shapes.mask(subscript)
    if mask is None or model.accelerator is None or rule.silent("stored", model.dynamic_shapes.is_stored(subscript)):
        return
    heat = _hot(subscript, mask, model)
    if heat is not None:
        shown = model.shown(mask, "the mask")
        yield Finding(
            subscript,
            f"How many elements {shown} takes depends on values on the device: the program waits for them, "
            f"{heat.often}. {_KEEP}",
        )


def _hot(node: cst.CSTNode, tensor: cst.BaseExpression, model: Model) -> Heat | None:
    """What makes a node run in every step, if the tensor is on an accelerator."""
    if rule.silent("not-on-device", not model.dynamic_shapes.is_on_accelerator(tensor)):
        return None
    heat = model.heat(node)
    return heat if heat is not None and heat.role is not Role.DATA else None
