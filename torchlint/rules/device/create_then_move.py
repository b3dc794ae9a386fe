"""A tensor is made in host memory and then copied to the device on which it is wanted.

## Why it costs

`torch.zeros(n).cuda()` allocates and fills host memory, then copies it over the bus. The host memory is pageable, so
that the copy first goes through a staging buffer and the Python thread waits for it. `torch.zeros(n, device="cuda")`
launches one kernel that fills the memory in place: nothing is copied and nobody waits.

## What to write instead

Every factory takes `device=` (and `dtype=`): `torch.zeros(n, device=device)`, `torch.arange(n, device=x.device)`,
`torch.tensor([1, 2], device=device)`. `torch.tensor(3.0, device="cuda")` still copies one number; `torch.full((),
3.0, device="cuda")` does not. Legacy constructors (`torch.FloatTensor(..)`) take no `device`: write `torch.tensor(..,
dtype=..)` for data, `torch.empty(.., dtype=..)` for a size. `torch.zeros(n).to(x)` of a tensor `x` casts as well:
`torch.zeros(n, device=x.device, dtype=x.dtype)`.

So does what is computed of such tensors and of numbers alone: `torch.arange(n, device=device) * k`. A mask that is
made, filled and moved in the end is best filled where it ends. A function that makes a grid or a mask of numbers takes
a device: `grid(h, w, device=x.device)`, not `grid(h, w).to(x.device)` in every forward pass.

The fix passes the device to the factory and drops the move. It is safe for `zeros`, `ones`, `full`, `eye`, `empty`,
integer `arange`, and for `tensor` of Python data. It is unsafe for random factories (the generator of the device
draws other numbers than the CPU's), for `arange`, `linspace` and `logspace` of floats (the two round differently),
with `requires_grad=True` (the result becomes a leaf), for views (of which the move made a copy), for `type_as` (which
`torch.jit.trace` records as it is), and in files that speak of streams (for which the host waited).

Where the tensor moves only if there is a device (`if use_cuda: noise = noise.cuda()`) nothing is rewritten: work the
device out once, `device = torch.device("cuda" if use_cuda else "cpu")`, and pass it.

## When to ignore it

Random numbers that must be the same on every device are best drawn on the CPU. A copy at set-up costs little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.placing import place, risks
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import (
    CASTABLE_FACTORIES,
    FACTORIES,
    LEGACY_CONSTRUCTORS,
)
from torchlint.semantics.values import Device
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.tensors.creations import Creation


rule = Rule(
    code="TL201",
    name="create-then-move",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="a tensor is made on the CPU and then copied to the device",
    triggers=Triggers.all_of(
        frozenset(name.rpartition(".")[2] for name in FACTORIES | LEGACY_CONSTRUCTORS),
    ),
    examples=(
        Example(
            bad='import torch\n\nmask = torch.zeros(8, 8).to("cuda")\n',
            good='import torch\n\nmask = torch.zeros(8, 8, device="cuda")\n',
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#create-tensors-directly-on-the-target-device",
        "https://docs.pytorch.org/docs/stable/notes/randomness.html",
    ),
    documentation=__doc__,
    silences={
        "no-factory": "What is moved is no fresh tensor: `from_numpy`, `torch.load`, batches, modules, arithmetic with "
        "anything else.",
        "host": "The tensor is moved to the CPU.",
        "no-device": "The argument of `.to` is a dtype, or nothing that is known to be a device or another tensor.",
        "empty": "The tensor has no elements: there is nothing to copy.",
        "once": "What is filled over several lines before it moves, or made by a function, is not made in every step.",
        "placed": "The factory has `device=`, `out=` or `pin_memory` already, or `**` arguments that may carry them.",
        "generator": "The numbers come from a generator, which belongs to the CPU. An argument may be None instead.",
        "tensor-data": "`tensor` and `as_tensor` of an existing tensor, `as_tensor` of an array, `normal` of tensors.",
        "used-between": "The tensor on the CPU is used for more than to fill it before it is moved, or after.",
        "conditional": "The tensor is moved under a condition that asks for something else than where to compute.",
        "default-device": "The file sets a default device, on which factories work.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
)


@rule.check(cst.Call, called=FACTORIES | LEGACY_CONSTRUCTORS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a factory whose tensor is moved at once."""
    found, given = model.creation(call), model.arguments(call)
    if found is None:
        return
    on_host = found.move is not None and found.move.place is Device.CPU
    if rule.silent("host", on_host) or rule.silent("empty", model.constructors.holds_nothing(call)):
        return
    drawn = given.get("generator")
    if rule.silent("generator", drawn is not None and not model.random_generators.is_optional(drawn)):
        return
    placed = given.open_keywords or bool({"device", "out", "pin_memory"} & given.named.keys())
    wraps = model.constructors.wraps_existing(call, model.callee(call), given)
    if rule.silent("placed", placed) or rule.silent("tensor-data", wraps):
        return
    is_spread = found.is_computed and found.move is not None and not model.within(call, found.move.call)
    rare = rule.silent("once", is_spread and model.heat(call) is None)
    if rare or rule.silent("default-device", model.on_default_device(call)):
        return
    yield Finding(call, _message(found, model), _fix(found, model))


@rule.check(cst.Call)
def check_function(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a function of the file whose tensor, which it makes of numbers in every step, is moved at once."""
    found = model.creations.by_function(call)
    if found is None or rule.silent("host", found.move is not None and found.move.place is Device.CPU):
        return
    heat = model.heat(call)
    kept = model.inference.kept_results
    rare = heat is None or heat.role is Role.DATA or kept.is_kept_by_caller(call) or kept.is_kept(call)
    if rule.silent("once", rare) or heat is None:
        return
    if rule.silent("default-device", model.on_default_device(call) or model.device_context(call)):
        return
    function = model.code(call.func)
    yield Finding(
        call,
        f"`{function}(...)` computes a tensor in host memory {heat.often}, which `{_mover(found, model)}(...)` then "
        f"copies to the device: the program waits for the copy. Give `{function}` a parameter `device`, and hand it to "
        "the factories in it.",
    )


def _message(found: Creation, model: Model) -> str:
    factory, name, given = model.code(found.factory.func), model.callee(found.factory), model.arguments(found.factory)
    legacy = name in LEGACY_CONSTRUCTORS
    start = "torch.tensor(..., dtype=..." if legacy else model.shown(found.factory, f"`{factory}(...)`")[1:-2]
    typed = found.is_computed or name not in CASTABLE_FACTORIES or "dtype" in given.named
    keeps = ", and keep the cast" if typed and _mover(found, model) == ".type_as" else ""
    added = found.keywords(is_typed=typed)
    advice = f"Create it there: `{start}, {added})`{keeps}"
    if given.get("generator") is not None:
        advice = f"Draw there, from a generator of that device: `{factory}(..., generator=..., {added})`"
    if name == "torch.tensor" and len(found.factory.args) == 1 and literal(found.factory.args[0].value) is not None:
        advice += "; `torch.full((), value, device=...)` copies nothing"
    if found.is_computed:
        return (
            f"`{factory}(...)` makes a tensor in host memory, and what is computed of it there "
            f"`{_mover(found, model)}(...)` copies to the device: the program waits for the copy. Make it on the "
            f"device, and what it is computed with: `{start}, {added})`."
        )
    return (
        f"`{factory}(...)` makes a tensor in host memory that `{_mover(found, model)}(...)` then copies to the device, "
        f"and the program waits for the copy. {advice}."
    )


def _mover(found: Creation, model: Model) -> str:
    if found.through is not None:
        return model.code(found.through.func)
    return f".{found.move.method}" if found.move is not None else ""


def _fix(found: Creation, model: Model) -> Fix | None:
    placement = place(found, model)
    drawn = model.arguments(found.factory).get("generator") is not None
    if placement is None or found.move is None or drawn or model.device_context(found.factory):
        return None
    why = " ".join(risks(found, placement, model))
    return Fix(
        f"Pass `device={found.move.device}` to `{model.code(found.factory.func)}`",
        placement.edits,
        Safety.UNSAFE if why else Safety.SAFE,
        why,
        placement.evidence,
    )
