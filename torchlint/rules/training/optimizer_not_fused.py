"""An optimizer is told to update one parameter after the other.

`foreach=False`, or `fused=False` without `foreach=True`, for an optimizer of `torch.optim` in code that computes on an
accelerator.

## Why it costs

A for-loop over the parameters launches several small kernels for each of them: thousands for a step of a model with a
few hundred parameters. From torch 2.0 on optimizers work on lists of tensors where all parameters are on the
accelerator ("since it is usually significantly more performant"), unless `foreach` or `fused` is given: `fused=False`
alone switches both off.

## What to write instead

Leave the argument out, or pass `fused=True` to `Adam` (torch 1.13), `AdamW` (2.0) or `SGD` (2.3). The fix leaves it
out. It is unsafe: kernels over lists round differently in rare cases, and need about as much more memory as the
parameters take.

## When to ignore it

Where that memory is not there, or a test compares implementations. On small models the difference can be nothing; the
rule claims no figure that was not measured.

Read in `torch/optim/adam.py` and `optimizer.py` of torch 2.13 and 2.3 (`fused is None and foreach is None` decides
about the default) and of 1.13, where the for-loop is the default, so that leaving it out changes nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import RemoveArgument
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import OPTIMIZERS
from torchlint.syntax.calls import Arguments, is_none, literal

WITH_CHOICES = OPTIMIZERS - {f"torch.optim.{name}" for name in ("LBFGS", "Muon", "SparseAdam")}
CHOICES = ("foreach", "fused")

rule = Rule(
    code="TL306",
    name="optimizer-not-fused",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="an optimizer is told to update one parameter after the other",
    triggers=Triggers.all_of(CHOICES, "optim"),
    examples=(
        Example(
            bad="""
import torch

model = torch.nn.Linear(2, 2).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=False)
""",
            good="""
import torch

model = torch.nn.Linear(2, 2).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/optim.html#algorithms",
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html",
    ),
    documentation=__doc__,
    silences={
        "given": "The other implementation is chosen, or a variable or a star argument decides.",
        "needed": "`differentiable=True` needs the for-loop.",
        "cpu": "Nothing says that the file computes on an accelerator: on the CPU the for-loop is the default.",
        "asked-for": "The code runs only if a flag or its caller asks for it.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=WITH_CHOICES)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an optimizer whose fast implementations are switched off."""
    if model.callee(call) not in WITH_CHOICES:
        return
    given = model.arguments(call)
    switched_off = [name for name in CHOICES if literal(given.get(name)) is False]
    if not switched_off or rule.silent("given", _chooses(given)):
        return
    if rule.silent("needed", literal(given.get("differentiable")) is True):
        return
    if model.accelerator is None or rule.silent("asked-for", model.chosen(call)):
        return
    if rule.silent("test", model.in_test(call)):
        return
    arguments = [argument for name, argument in given.nodes.items() if name in switched_off]
    shown = " and ".join(f"`{name}=False`" for name in switched_off)
    yield Finding(
        call,
        f"{shown} makes `{model.code(call.func)}` update one parameter after the other, with several small kernels for "
        "each. Leave it out: from torch 2.0 on all parameters are updated together.",
        Fix(
            f"Leave {shown} out",
            tuple(RemoveArgument(call, argument) for argument in arguments),
            Safety.UNSAFE,
            "The kernels over all parameters may round differently, and need about as much memory as the parameters.",
        )
        if len(arguments) == len(switched_off) and not model.is_partial(call)
        else None,
    )


def _chooses(given: Arguments) -> bool:
    """Whether one of the two arguments is anything but False or None, or may be given unseen."""
    chosen = (given.get(name) for name in CHOICES)
    return given.open or any(
        value is not None and literal(value) is not False and not is_none(value) for value in chosen
    )
