"""`torch.Tensor(...)` is called to make a tensor.

## Why it costs

What the call does depends on what it gets: of a number or sizes it makes a tensor of that shape whose memory holds
whatever was there, of a sequence one with its values, of a tensor an alias. All are float32, whatever the data: whole
numbers above 16,777,216 lose digits, and indices cannot be used as such. It takes no dtype and no device.

## What to write instead

`torch.tensor(data)` for values, which keeps their type, or `torch.tensor(data, dtype=torch.float32)` for what it did;
`torch.empty(2, 3)` for memory, `torch.zeros(2, 3)` where it is filled next.

The fix writes what the call did where the file shows which of these it is. It is unsafe, since the default dtype, which
another file can change, decides about the type.

## When to ignore it

In subclasses of `torch.Tensor`. The rule is silent where the tensor is moved at once, which is the business of
[TL201](create-then-move.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.placing import modernise
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

CONSTRUCTOR = "torch.Tensor"

rule = Rule(
    code="TL810",
    name="tensor-constructor",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`torch.Tensor(...)` is called to make a tensor",
    triggers=Triggers.all_of("Tensor"),
    examples=(
        Example(
            bad="import torch\n\nweights = torch.Tensor([0.5, 0.5])\n",
            good="import torch\n\nweights = torch.tensor([0.5, 0.5], dtype=torch.float32)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/tensors.html",),
    documentation=__doc__,
    silences={
        "moved": "The tensor is moved to a device at once: that is reported as such.",
        "not-called": "The class is named as a type, or derived from: no tensor is made.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=(CONSTRUCTOR,))
def constructed(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call of the class."""
    if model.qualified_name(call.func) != CONSTRUCTOR or rule.silent("moved", model.creation(call) is not None):
        return
    is_placed = model.on_default_device(call) or model.device_context(call)
    modern = modernise(call, model) if not is_placed else None  # a factory would make it there
    dtype = "the default dtype" if model.sets_default_dtype else "float32"
    yield Finding(
        call,
        f"`{model.code(call.func)}(...)` makes {dtype}, and guesses what it is given: numbers are a size (of memory "
        f"with whatever it holds), a sequence is data. Write {_spelled_out(call, model)}.",
        None
        if modern is None
        else Fix(
            "Make the tensor with a factory and its dtype",
            modern.edits,
            Safety.UNSAFE,
            "The default dtype, which another file can change, decided about the type, and no default device about the "
            "place.",
            modern.evidence,
        ),
    )


def _spelled_out(call: cst.Call, model: Model) -> str:
    """Return what says the same without a guess."""
    plain = [argument for argument in call.args if argument.keyword is None]
    shown = [model.code(argument.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for argument in call.args]
    given = ", ".join(shown if plain else ["0", *shown])
    given = given if len(given) <= 40 and "\n" not in given else "..."
    first = plain[0].value if len(plain) == 1 and not plain[0].star else None
    if isinstance(first, (cst.List, cst.Tuple)):
        dtype = "torch.get_default_dtype()" if model.sets_default_dtype else "torch.float32"
        return f"`torch.tensor({given}, dtype={dtype})`"
    if first is None or isinstance(first, cst.Integer):
        return f"`torch.empty({given})`"
    return f"`torch.tensor({given})` if that is data, `torch.empty({given})` if it is a size"
