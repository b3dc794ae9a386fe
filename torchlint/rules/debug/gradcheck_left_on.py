"""Gradients are compared with finite differences in a program that trains.

`torch.autograd.gradcheck` and `torch.autograd.gradgradcheck` outside tests.

## Why it costs

The check runs the function twice for every number in its inputs, in double precision, and builds the whole Jacobian. It
belongs into a test that runs once for each change of the function, not into each run of the training.

## What to write instead

Move the call into a test.

## When to ignore it

Where the check is what the program is for. The rule is silent in files that take no training step, behind flags and
arguments, under an `if __name__ == "__main__":` of a file that trains nothing, and in tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

CHECKS = frozenset(
    (
        "torch.autograd.gradcheck",
        "torch.autograd.gradgradcheck",
        "torch.autograd.gradcheck.gradcheck",
        "torch.autograd.gradcheck.gradgradcheck",
    )
)

rule = Rule(
    code="TL603",
    name="gradcheck-left-on",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="gradients are compared with finite differences in a program that trains",
    triggers=Triggers.all_of(("gradcheck", "gradgradcheck")),
    examples=(
        Example(
            bad="import torch\n\ntorch.autograd.gradcheck(torch.sin, x)\nloss = torch.sin(x).sum()\nloss.backward()\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",),
    documentation=__doc__,
    silences={
        "no-training": "The file takes no training step, or never calls the function that checks.",
        "asked-for": "The code runs only if a flag or its caller asks for it, or after an error.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def gradcheck(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a numerical check of gradients."""
    if model.callee(node) not in CHECKS:
        return
    if rule.silent("test", model.in_test(node)) or rule.silent("asked-for", model.chosen(node)):
        return
    if rule.silent("no-training", not _is_run(node, model)):
        return
    yield Finding(
        node,
        f"`{model.code(node.func)}` runs its function twice for every number of its inputs, to compare gradients: "
        "every run of this program pays for that. Move it into a test.",
    )


def _is_run(call: cst.Call, model: Model) -> bool:
    """Whether the check runs in a program that trains."""
    function = model.enclosing_function(call)
    if not model.training_code.anywhere():
        return False
    return function is None or bool(model.callers(function)) or model.training_code.trains(function.body)
