"""`torch.utils.checkpoint.checkpoint` is called without `use_reentrant`.

`checkpoint(function, x)` and `checkpoint_sequential(functions, segments, x)`.

## Why it costs

There are two implementations. The older one, which is still the default, runs a backward pass of its own inside the
backward pass: it records nothing unless one of the inputs needs a gradient, it cannot be used with
`torch.autograd.grad` or with `inputs=`, and it always recomputes everything. Since torch 2.1 a call that does not
choose warns, and torch announces that it will be an error.

## What to write instead

`checkpoint(function, x, use_reentrant=False)`, which PyTorch recommends; it exists since torch 1.11
(`checkpoint_sequential`: 2.0). `use_reentrant=True` keeps the old behaviour and says so.

The fix writes False. It is unsafe: values and gradients are the same, but a function whose inputs need no gradient now
trains its parameters, and hooks and nested checkpoints run in another order.

## When to ignore it

Where the choice is made elsewhere. The rule is silent where `**options` may carry it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.process.target import shown
from torchlint.semantics.references.version_guards import depends_on_version

SINCE = {
    "torch.utils.checkpoint.checkpoint": (1, 11),
    "torch.utils.checkpoint.checkpoint_sequential": (2, 0),
}
"""The functions, and since when they have the argument."""

CHOICE_IS_FOURTH = ("functions", "segments", "input", "use_reentrant")

rule = Rule(
    code="TL804",
    name="checkpoint-reentrant-unset",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`checkpoint` without `use_reentrant`",
    triggers=Triggers.all_of(("checkpoint", "checkpoint_sequential")),
    examples=(
        Example(
            bad="from torch.utils.checkpoint import checkpoint\n\ny = checkpoint(block, x)\n",
            good="from torch.utils.checkpoint import checkpoint\n\ny = checkpoint(block, x, use_reentrant=False)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/checkpoint.html",),
    documentation=__doc__,
    silences={
        "chosen": "The call says which implementation it wants.",
        "open": "A `**` argument may say it.",
        "older-target": "The oldest torch that the project supports does not have the argument.",
        "version": "The code runs only with some versions: after a test of one, or where the argument is unknown.",
        "other-name": "The name means something else: of another library, of the project, a method, a parameter.",
        "not-called": "The function is passed on, or bound to its first arguments.",
    },
    fixes=(Safety.UNSAFE,),
    in_tests=True,
)


@rule.check(cst.Call, called=SINCE)
def unset(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a checkpoint that does not choose its implementation."""
    name = model.callee(call)
    if name not in SINCE:
        return
    given = model.arguments(call, CHOICE_IS_FOURTH if name.endswith("_sequential") else (), through_names=True)
    if rule.silent("chosen", "use_reentrant" in given.named) or rule.silent("open", given.open_keywords):
        return
    if rule.silent("older-target", model.target.lacks(SINCE[name])):
        return
    if rule.silent("version", depends_on_version(call, model)):
        return
    yield Finding(
        call,
        f"`{model.code(call.func)}` is called without `use_reentrant`: it takes the older implementation, which torch "
        "warns about and which trains nothing unless an input needs a gradient. Pass `use_reentrant=False`, or `True` "
        "to keep what it does now.",
        None if name.endswith("_sequential") and given.open_positions else _fix(call, name, model),
    )


def _fix(call: cst.Call, name: str, model: Model) -> Fix:
    needs = "" if model.target.version >= SINCE[name] else f" It needs torch {shown(SINCE[name])}."
    return Fix(
        "Pass `use_reentrant=False`",
        (AddKeyword(call, "use_reentrant", "False"),),
        Safety.UNSAFE,
        "Parameters of a function whose inputs need no gradient are trained then, and hooks run in another order."
        + needs,
    )
