"""A softmax does not say along which dimension, and picks one by how many there are.

## Why it costs

`F.softmax(x)` and `nn.Softmax()` without `dim` normalise along dimension 0 where `x` has none, one or three dimensions,
along dimension 1 where it has two or at least four. A sequence `(batch, time, features)` is then normalised over the
batch, and one sample less or more changes the results of all others. torch warns once and calls it deprecated.

## What to write instead

`F.softmax(x, dim=-1)` for scores that stand last, `dim=1` for the channels of images.

## When to ignore it

Never: the dimension that is meant can always be written.

Holds for all supported versions of torch. Read in `torch.nn.functional.softmax` of torch 2.13 and its helper
`_get_softmax_dim`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import is_none

FUNCTIONS = frozenset(f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax", "softmin"))
LAYERS = frozenset(f"torch.nn.{name}" for name in ("Softmax", "LogSoftmax", "Softmin"))

rule = Rule(
    code="TL903",
    name="softmax-without-dim",
    family=Family.HYGIENE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a softmax whose dimension depends on how many there are",
    triggers=Triggers.all_of(frozenset(name.rpartition(".")[2] for name in FUNCTIONS | LAYERS), "torch"),
    examples=(
        Example(
            bad="import torch.nn.functional as F\n\ndef weights(scores):\n    return F.softmax(scores)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html",),
    documentation=__doc__,
    silences={
        "given": "The dimension is given.",
        "open": "`*` or `**` arguments may carry it.",
        "other-name": "The function is another one, which needs a dimension or has a default.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=FUNCTIONS | LAYERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a softmax without its dimension."""
    name = model.qualified_name(call.func)
    if name not in FUNCTIONS and name not in LAYERS:
        return
    given = model.arguments(call, ("dim",) if name in LAYERS else ("input", "dim"))
    dimension = given.get("dim")
    if rule.silent("open", given.open) or rule.silent("given", dimension is not None and not is_none(dimension)):
        return
    if rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        f"{model.shown(call, 'This softmax')} is told no dimension and guesses: the first one where there are "
        "one or three, else the second. Write the one that is meant, such as `dim=-1`.",
    )
