"""A `DistributedSampler` that shuffles is never told which epoch it is, and every epoch has the same order.

The loader that draws by it is iterated over in an epoch loop that trains, and nothing in the file calls `set_epoch`.

## Why it costs

The sampler shuffles by a generator that it seeds with `seed + epoch` at the start of each pass, so that all processes
agree on the order. `epoch` is 0 until `set_epoch` says otherwise: every epoch goes through the items in one and the
same order, with the same batches on the same processes. The model trains, only worse than it could.

## What to write instead

```python
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for x, y in loader:
        ...
```

## When to ignore it

Where the order is meant to be the same in every epoch; `shuffle=False` says so better.

Holds for all supported versions of torch. Read in `torch/utils/data/distributed.py` of torch 2.13, and tried with it:
two passes over a sampler give the same indices, until `set_epoch(1)`. Frameworks call it themselves: Accelerate,
Lightning and the trainer of transformers, for loaders that are given to them.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import identifier, literal

SAMPLERS = ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler")
SIGNATURE = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
LOOKS = ("builtins.len", "builtins.isinstance", "builtins.print", "builtins.type")
FRAMEWORKS = ("prepare", "prepare_data_loader", "setup_dataloaders")

rule = Rule(
    code="TL703",
    name="sampler-epoch-not-set",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a `DistributedSampler` gives the same order in every epoch",
    triggers=Triggers.all_of("DistributedSampler", ("backward", "step")),
    examples=(
        Example(
            bad="""
from torch import optim
from torch.utils.data import DataLoader, DistributedSampler

optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, sampler=DistributedSampler(data), num_workers=4)
for epoch in range(10):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",),
    documentation=__doc__,
    silences={
        "not-shuffled": "The sampler does not shuffle, a variable decides, or its seed is no constant.",
        "set": "The file speaks of `set_epoch`, or sets the epoch of a sampler itself.",
        "handed-on": "The sampler is handed to something else than a loader, which may tell it the epoch.",
        "framework": "Loaders are handed to a framework, which does it.",
        "once": "Nothing shows that the loader is gone through in several epochs of training.",
        "other-class": "The sampler is of another class.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the sampler of a loader that trains for several epochs."""
    if model.callee(call) not in SAMPLERS or _tells_epoch(model) or model.speaks_of(*FRAMEWORKS):
        return
    given = model.arguments(call, SIGNATURE)
    fixed = [given.get(name) for name in ("shuffle", "seed")]
    chosen = given.open or any(value is not None and literal(value) is None for value in fixed)
    if rule.silent("not-shuffled", chosen or literal(fixed[0]) is False):
        return
    if rule.silent("test", model.in_test(call)):
        return
    name, loaders = _given_to(call, model)
    if rule.silent("handed-on", name is None) or not any(_trains_repeatedly(loader, model) for loader in loaders):
        return
    owner = name or "sampler"
    yield Finding(
        call,
        "Nothing calls `set_epoch` on this sampler, so that it gives the same order in every epoch. Call "
        f"`{owner}.set_epoch(epoch)` at the start of each.",
    )


def _tells_epoch(model: Model) -> bool:
    """Whether the file names the method anywhere, or writes to the attribute behind it."""
    if model.speaks_of("set_epoch") or model.names_any_of("set_epoch"):
        return True
    if any("set_epoch" in text.raw_value for text in model.nodes(cst.SimpleString)):
        return True
    targets = (target.target for target in model.nodes(cst.AssignTarget))
    return any(isinstance(target, cst.Attribute) and target.attr.value == "epoch" for target in targets)


def _given_to(call: cst.Call, model: Model) -> tuple[str | None, list[cst.Call]]:
    """Return what a sampler is called by, and the loaders that draw by it; no name where it goes elsewhere too."""
    place: cst.CSTNode = call
    parent = model.parent(place)
    while isinstance(parent, cst.IfExp):
        place, parent = parent, model.parent(parent)
    if isinstance(parent, cst.Arg):
        loader = _loader(parent, model)
        holder = model.parent(loader) if loader is not None else None
        target = holder.targets[0].target if isinstance(holder, cst.Assign) else None
        owner = f"{identifier(target)}.sampler" if target is not None and identifier(target) else "loader.sampler"
        return owner, [loader] if loader is not None else []
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    binding = (
        next((b for b in model.bindings(target) if b.node is target), None) if isinstance(target, cst.Name) else None
    )
    if binding is None:
        return None, []
    given = [parent for used in model.uses(binding) if isinstance(parent := model.parent(used), cst.Arg)]
    loaders = [_loader(argument, model) for argument in given if not _only_looks(argument, model)]
    return binding.name if all(loaders) else None, [loader for loader in loaders if loader is not None]


def _only_looks(argument: cst.Arg, model: Model) -> bool:
    """Whether an argument is only measured, compared or shown."""
    call = model.parent(argument)
    return isinstance(call, cst.Call) and model.callee(call) in LOOKS


def _loader(argument: cst.Arg, model: Model) -> cst.Call | None:
    """Return the loader that an argument is the sampler of."""
    call = model.parent(argument)
    loader = model.loader(call) if isinstance(call, cst.Call) else None
    is_sampler = loader is not None and loader.given.get("sampler") is argument.value
    return loader.call if loader is not None and is_sampler else None


def _trains_repeatedly(loader: cst.Call, model: Model) -> bool:
    if rule.silent("once", model.epochs.repeating(loader, through_attributes=True) is None):
        return False
    return any(model.training_code.trains(place) for place in model.epochs.places(loader, through_attributes=True))
