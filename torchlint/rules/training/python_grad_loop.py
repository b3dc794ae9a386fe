"""A loop in Python averages, clips or updates parameters one after the other, on each training step.

## Why it costs

Every operation on a GPU is launched by the host, which takes about ten microseconds, whatever the size of the tensor. A
network of 200 parameters takes 600 launches for an average that is written with three operations, in each step; the
operations of `torch._foreach_*`, of optimizers and of `torch.nn.utils` take all tensors at once, in a few launches.

## What to write instead

```python
with torch.no_grad():  # an average: q = q + tau * (p - q)
    torch._foreach_lerp_(list(target.parameters()), list(model.parameters()), tau)
torch.nn.utils.clip_grad_value_(model.parameters(), bound)
torch.optim.SGD(model.parameters(), lr=lr)  # in place of an update by hand
```

`torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))` keeps an average as a module
(torch 2.1 and newer). A mean in another order rounds otherwise in the last bit, so that there is no fix.

## When to ignore it

For a handful of parameters, on the CPU, and where the loop is there to show how an optimizer works.

`torch._foreach_lerp_` exists since torch 2.0; `clip_grad_value_` takes all tensors at once since 2.1. Read in the
documentation of `torch.optim` ("Weight Averaging") and in the sources of `torch.nn.utils.clip_grad` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.training.parameter_loops import ParameterLoop, Work

rule = Rule(
    code="TL312",
    name="python-grad-loop",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a loop in Python averages, clips or updates one parameter after the other on each step",
    triggers=Triggers.all_of(("parameters", "named_parameters"), ("backward", "step")),
    examples=(
        Example(
            bad="""
import torch

def train(model, target, loader, optimizer, tau):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True)).backward()
        optimizer.step()
        for p, q in zip(model.parameters(), target.parameters()):
            q.data.mul_(1 - tau).add_(tau * p.data)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html",
    ),
    documentation=__doc__,
    silences={
        "cold": "The loop does not run on each step of training: once, at the end of an epoch, every few steps.",
        "host": "Nothing shows that the parameters are on an accelerator.",
        "more": "The loop does more than that, or something else: it counts, prints, freezes, copies, zeroes.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.For)
def check(loop: cst.For, model: Model) -> Iterator[Finding]:
    """Report a loop over the parameters that one call could replace."""
    found = model.parameter_loops.find(loop)
    if found is None:
        return
    if model.accelerator is None or rule.silent("test", model.in_test(loop)):
        return
    if rule.silent("cold", not _is_hot(loop, model)):
        return
    yield Finding(
        loop.iter,
        "This loop launches its operations for one parameter after the other, in each training step. "
        f"{_instead(found, model)}",
    )


def _is_hot(loop: cst.For, model: Model) -> bool:
    """Whether a loop runs on each step: where it stands, or where the function is called that holds it."""
    heat = model.heat(loop)
    return heat is not None and not heat.is_imported


def _instead(found: ParameterLoop, model: Model) -> str:
    target = f"list({model.code(found.target)})"
    if found.work is Work.AVERAGE and found.source is not None:
        source = f"list({model.code(found.source)})"
        return f"`torch._foreach_lerp_({target}, {source}, weight)` averages all of them at once."
    if found.work is Work.CLIP_GRADIENTS:
        return f"`torch.nn.utils.clip_grad_value_({model.code(found.target)}, bound)` clips all of them at once."
    if found.work is Work.CLAMP:
        return (
            f"`torch._foreach_clamp_min_({target}, bound)` and `torch._foreach_clamp_max_` clamp all of them at once."
        )
    return "An optimizer such as `torch.optim.SGD` updates all of them at once, by default on CUDA."
