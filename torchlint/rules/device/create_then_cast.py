"""A tensor is made with one dtype and cast to another at once.

## Why it costs

`torch.ones(n).half()` allocates and fills 32-bit floats, and then reads them all to write a second tensor: two
allocations, two kernels and three times the memory traffic. `torch.ones(n, dtype=torch.float16)` writes the tensor
once.

## What to write instead

Every factory takes `dtype=`: `torch.zeros(n, dtype=torch.long)`, `torch.arange(n, dtype=torch.float32)`,
`torch.ones(n, dtype=x.dtype)`.

The fix is safe for `zeros`, `ones` and `eye`, and for `full`, `tensor`, `as_tensor` and `arange`
of numbers that are written out and that both dtypes hold exactly, where the dtype is one of torch's by name and not
one of floats. It is unsafe for everything else: what wraps the factories while a model is built, as DeepSpeed does, may
make floats narrower, random factories draw other numbers in another dtype, numbers are rounded once instead of twice,
and a variable may hold a device. Where a factory may refuse the dtype there is no fix: older releases make no
`arange` or `eye` of 16-bit floats on the CPU. Nor is there one with `layout=` or `pin_memory=`.

## When to ignore it

The rounding of the first dtype, or the random numbers of an older run, are wanted.
`torch.zeros(n).float()` is not reported: floats are made there, unless somebody changes the default dtype.

Holds for all supported versions of torch; read in the documentation of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword, Unwrap
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import DTYPE_CASTS, FACTORIES, RANDOM_FACTORIES
from torchlint.semantics.tensors.casts import FLOATING

if TYPE_CHECKING:
    from torchlint.semantics.tensors.casts import Cast

rule = Rule(
    code="TL219",
    name="create-then-cast",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="a tensor is made with one dtype and cast to another at once",
    triggers=Triggers.all_of(
        frozenset(name.rpartition(".")[2] for name in FACTORIES), frozenset(("to", "type", *DTYPE_CASTS))
    ),
    examples=(
        Example(
            bad="import torch\n\nmask = torch.ones(8, 8).bool()\n",
            good="import torch\n\nmask = torch.ones(8, 8, dtype=torch.bool)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/torch.html#creation-ops",
        "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype",
    ),
    documentation=__doc__,
    silences={
        "no-cast": "The factory makes that dtype anyway, or what it makes is not certain: `torch.tensor(values)`.",
        "typed": "The factory has a dtype already, or arguments that may carry one.",
        "not-only": "The method gets more than a dtype: a device, `copy=True`, or something that may be a tensor.",
        "moved": "The tensor is moved to a device too: TL201 reports that.",
        "leaf": "The tensor asks for a gradient: the cast makes another one of it.",
        "out": "The tensor is written into one that is there already.",
        "rounded": "The cast makes whole numbers of fractions, or wraps them; the factory counts others, or refuses.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    yields_to=("TL201", "TL504"),
)


@rule.check(cst.Call, called=("to", "type", *DTYPE_CASTS))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a cast of a fresh tensor."""
    found = model.casts.find(call)
    if found is None:
        return
    given = found.given
    if rule.silent("typed", given.open_keywords or "dtype" in given.named) or rule.silent("out", "out" in given.named):
        return
    if rule.silent("leaf", "requires_grad" in given.named):
        return
    if rule.silent("rounded", found.rounds):
        return
    moved = model.creation(found.factory)
    if rule.silent("moved", moved is not None and not moved.is_computed):
        return
    dtype, factory = _dtype(found, model), model.code(found.factory.func)
    made = model.shown(found.factory, f"`{factory}(...)`")
    yield Finding(
        call,
        f"{made} makes a tensor, of which `{_method(call, model)}` writes a second one. Pass "
        f"`dtype={dtype or '...'}` to `{factory}`, which writes it once.",
        _fix(found, dtype, model),
    )


def _method(call: cst.Call, model: Model) -> str:
    assert isinstance(call.func, cst.Attribute)
    return f".{call.func.attr.value}({', '.join(model.code(argument.value) for argument in call.args)})"


def _dtype(found: Cast, model: Model) -> str | None:
    """How the file can name the dtype."""
    if found.expression is not None:
        return model.code(found.expression)
    return model.spelling(found.dtype, found.call) if found.dtype is not None else None


def _fix(found: Cast, dtype: str | None, model: Model) -> Fix | None:
    if dtype is None or not found.fixable or model.is_partial(found.factory):
        return None
    if not found.given.named.keys().isdisjoint(("pin_memory", "layout")):
        return None  # the cast gives memory that is not pinned, and other layouts refuse other dtypes
    why = ""
    if found.name in RANDOM_FACTORIES:
        why = "The generator draws other numbers for another dtype."
    elif not found.exact and found.name == "torch.empty":
        why = "Memory without values holds others, also those that the deterministic mode of torch fills in."
    elif not found.exact and found.name == "torch.eye":
        why = "Older releases of torch cannot make every dtype of it on the CPU."
    elif not found.exact:
        why = "Numbers that one of the dtypes cannot hold are rounded once instead of twice, or refused."
    elif found.legacy:
        why = "That type stands for the CPU too, where a default device may not be."
    elif found.dtype in FLOATING:
        why = "What wraps the factories while a model is built, as DeepSpeed does, may make the floats narrower."
    elif found.evidence is not Evidence.PROVEN:
        why = "Whether it is a dtype that the tensor is cast to cannot be seen here."
    return Fix(
        f"Pass `dtype={dtype}` to `{model.code(found.factory.func)}`",
        (AddKeyword(found.factory, "dtype", dtype), Unwrap(found.call, found.factory)),
        Safety.UNSAFE if why else Safety.SAFE,
        why,
        found.evidence,
    )
