"""A training step runs a model with gradients on, and detaches all that comes out of it.

`discriminator(generator(z).detach())`, `target = teacher(x).detach()`, `fake = generator(z)` where only
`fake.detach()` is read, and `policy(state).argmax().item()` in a loop that trains the policy.

## Why it costs

With gradients on, the forward pass records a graph and keeps every activation that a backward pass would need.
Detaching the result, or reading numbers from it, makes sure that there is none: the graph was recorded for nothing. In
place of the activations of one layer, those of the whole model are in memory at the peak, and recording them takes time
on the CPU.

## What to write instead

```python
with torch.no_grad():
    fake = generator(z)
score = discriminator(fake)
```

The values are the same, batch norm and dropout do as before, and nothing is left to detach. There is no fix: the call
has to move into a block of its own.

## When to ignore it

Where somebody looks at the graph from inside: hooks, or a model that differentiates by its input. Where the result is
used with its graph as well, the rule is silent.

Tried with torch 2.13: values, running statistics and generators are equal in both forms.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

HOOKS = ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_hook")

rule = Rule(
    code="TL316",
    name="detached-forward",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a training step records the graph of a forward pass, and detaches the result",
    triggers=Triggers.all_of(("detach", "item", "tolist", "numpy"), "torch"),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

def train(generator: nn.Module, discriminator: nn.Module, loader, optimizer):
    for real in loader:
        optimizer.zero_grad(set_to_none=True)
        fake = discriminator(generator(torch.randn(8, 16)).detach())
        (fake.mean() - discriminator(real).mean()).backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
        "https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
    ),
    documentation=__doc__,
    silences={
        "used": "The result is used with its graph as well, or handed on.",
        "not-a-model": "What is called is no model: a loss, a layer without parameters, a function.",
        "no-graph": "Gradients are off, or the model switches them off itself.",
        "not-training": "It is no step of a training, or not in every step: callers may switch gradients off, and an "
        "evaluation is reported as a whole by TL501.",
        "frozen": "The parameters of the model are frozen, at least for a while.",
        "one-layer": "A single layer keeps little.",
        "differentiates": "The model computes gradients itself, or hooks look at what it computes.",
    },
)


@rule.check(cst.Call, condition=lambda model: model.retentions.has_steps)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the forward pass of a model of which only detached values are used."""
    found = model.detached.forward(call)
    if found is None:
        return
    if rule.silent("no-graph", found.switches_off or model.evaluator.gradients.disabled(call)):
        return
    if rule.silent("frozen", found.is_frozen) or rule.silent("one-layer", not found.is_network):
        return
    if rule.silent("differentiates", found.differentiates or model.speaks_of(*HOOKS)):
        return
    heat = model.heat(call)
    evaluated = model.inference.call(call)
    evaluates = evaluated is not None and not evaluated.trains and evaluated.turn is None
    if rule.silent("not-training", heat is None or not heat.trains or evaluates):
        return
    often = heat.often if heat is not None else "here"
    ran = model.shown(call, f"`{model.code(call.func)}`")
    where = (
        f"`{found.variable.value}` is only read detached or as numbers"
        if found.variable is not None
        else "its result is detached or read as numbers"
    )
    yield Finding(
        call,
        f"{ran} records a graph {often}, and {where}: every activation is kept for nothing. Run it in "
        "`with torch.no_grad():`.",
    )
