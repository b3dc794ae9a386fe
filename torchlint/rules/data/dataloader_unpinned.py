"""A `DataLoader` hands out batches in pageable memory that are then copied to the GPU.

## Why it costs

The GPU can only read page-locked (pinned) host memory by itself. A batch in pageable memory is first copied into a
pinned buffer, and the training thread waits for it; `non_blocking=True` changes nothing then. With `pin_memory=True`
a thread of the loader makes that copy ahead of time, and the transfer can run while the GPU computes.

## What to write instead

`DataLoader(dataset, pin_memory=True)`, and `batch.to(device, non_blocking=True)`. Where the device is chosen at run
time, `pin_memory=torch.cuda.is_available()`.

The fix is safe for the default collate function and a dataset that certainly yields tensors of the CPU; otherwise it
is unsafe, because a batch of CUDA or sparse tensors cannot be pinned, and a batch of a class of its own is pinned by
its `pin_memory` method only.

## When to ignore it

The batches stay on the CPU, host memory is short (pinned memory cannot be swapped out), or measurements say
otherwise: under WSL and for small batches pinning can cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import DEVICE_LOADERS, LOADERS
from torchlint.semantics.values import Device
from torchlint.syntax.calls import Arguments, is_none, literal

_CHECKED = LOADERS - DEVICE_LOADERS

rule = Rule(
    code="TL102",
    name="dataloader-unpinned",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ON,
    summary="A DataLoader for the GPU without `pin_memory`",
    triggers=Triggers.all_of(frozenset(name.rpartition(".")[2] for name in _CHECKED), ("to", "cuda")),
    examples=(
        Example(
            bad="""from torch.utils.data import DataLoader

def train(model, dataset):
    for images, labels in DataLoader(dataset, num_workers=4):
        model(images.cuda())
""",
            good="""from torch.utils.data import DataLoader

def train(model, dataset):
    for images, labels in DataLoader(dataset, num_workers=4, pin_memory=True):
        model(images.cuda())
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/data.html#memory-pinning",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    ),
    documentation=__doc__,
    silences={
        "given": "`pin_memory` is given by an expression: somebody has thought about it.",
        "kwargs": "`*` or `**` arguments may carry `pin_memory`.",
        "on-device": "The dataset or the collate function yields CUDA tensors, which cannot be pinned.",
        "constants": "The items are prompts, indices or other settings of the dataset: no data to pin.",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose batches are not pinned."""
    if model.callee(call) not in _CHECKED or model.moves.destination is None:
        return  # without a move to an accelerator in the file pinning only costs
    given = model.arguments(call)
    pinned = given.get("pin_memory")
    if rule.silent("given", pinned is not None and literal(pinned) is not False):
        return
    if rule.silent("kwargs", pinned is None and given.open):
        return
    dataset = given.get("dataset")
    if rule.silent("constants", dataset is not None and model.datasets.yields_constants(dataset)):
        return
    if rule.silent("on-device", _yields_device_tensors(given, model)):
        return
    value = _value(call, model)
    yield Finding(
        call,
        f"The batches of this loader{_shown(given, model)} lie in pageable memory: each copy to the GPU goes through a "
        f"staging buffer and makes the host wait. Pass `pin_memory={value or 'True'}`.",
        _fix(call, given, value, model),
    )


def _yields_device_tensors(given: Arguments, model: Model) -> bool:
    sources = (given.get("dataset"), given.get("collate_fn"))
    return any(source is not None and model.datasets.yields_device_tensors(source) for source in sources)


def _shown(given: Arguments, model: Model) -> str:
    dataset = given.get("dataset")
    shown = model.code(dataset) if dataset is not None else ""
    return f" of `{shown}`" if shown and "\n" not in shown and len(shown) <= 60 else ""


def _value(call: cst.Call, model: Model) -> str | None:
    """The code to pass: whether there is CUDA, where the device is chosen at run time."""
    if model.moves.destination is Device.ACCELERATOR:
        return "True"
    available = model.spelling("torch.cuda.is_available", call)
    return f"{available}()" if available is not None else None


def _fix(call: cst.Call, given: Arguments, value: str | None, model: Model) -> Fix | None:
    if value is None or model.mentions_mps or model.datasets.makes_sparse_tensors():
        return None
    pinned, dataset, collate = given.get("pin_memory"), given.get("dataset"), given.get("collate_fn")
    own = pinned is not None and model.within(pinned, call)
    edit: Edit = Replace(pinned, value) if pinned is not None and own else AddKeyword(call, "pin_memory", value)
    plain = collate is None or is_none(collate)
    is_torch = model.callee(call) == "torch.utils.data.DataLoader"
    is_safe = plain and is_torch and dataset is not None and model.datasets.on_host(dataset)
    return Fix(
        f"Pass `pin_memory={value}`",
        (edit,),
        Safety.SAFE if is_safe else Safety.UNSAFE,
        ""
        if is_safe
        else "A batch that holds CUDA or sparse tensors, or is of a class of its own, may not be pinnable.",
    )
