"""A `DataLoader` hands out batches in pageable memory that are then copied to the GPU.

## Why it costs

The GPU can only read page-locked (pinned) host memory by itself. A batch in pageable memory is first copied into a
pinned buffer, and the training thread waits for it; `non_blocking=True` changes nothing then. With `pin_memory=True`
a thread of the loader makes that copy ahead of time, and the transfer can run while the GPU computes.

## What to write instead

`DataLoader(dataset, pin_memory=True)`, and `batch.to(device, non_blocking=True)`. Where the device is chosen at run
time, `pin_memory=torch.cuda.is_available()`.

Loaders that a framework moves the batches of count as well: those given to accelerate's `prepare`, to a Lightning
`Trainer(accelerator="gpu")`, to Ignite's `create_supervised_trainer(device=...)`, timm's `create_loader`, and Hugging
Face's `TrainingArguments(dataloader_pin_memory=..)`, which pins unless it is told not to.

The fix is safe for the default collate function and a dataset that certainly yields tensors of the CPU, made in view
or torchvision's own with its own transforms; otherwise it is unsafe, because a batch of CUDA or sparse tensors cannot
be pinned, and a batch of a class of its own is pinned by its `pin_memory` method only. `torch.cuda.is_available()` is
unsafe as well in a file that may fork, since a forked process cannot use CUDA after that question, and where an option
decides too.

## When to ignore it

The batches stay on the CPU, host memory is short (pinned memory cannot be swapped out), or measurements say
otherwise: under WSL and for small batches pinning can cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.loading.texts import yields_text
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import FRAMEWORK_MOVES, WITH_WORKERS, Choice
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import is_none, literal

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

_REMOTE = ("rpc_sync", "rpc_async", "RRef")
# What may fork, in which CUDA must not be asked for before.
_STARTS_PROCESSES = ("multiprocessing", "Process", "Pool", "ProcessPoolExecutor", "fork", "joblib")

rule = Rule(
    code="TL102",
    name="dataloader-unpinned",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ON,
    summary="a `DataLoader` for the GPU without `pin_memory`",
    triggers=Triggers.all_of(WITH_WORKERS, ("to", "cuda", *FRAMEWORK_MOVES)),
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
        "text": "The items are text and paths: a batch is a list of strings.",
        "on-host": "No use of the batches takes them off the host, nothing but single batches is taken, or other "
        "processes compute with them (RPC).",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
)


@rule.check(cst.Call, called=WITH_WORKERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose batches are not pinned."""
    loader = model.loader(call)
    pinning = loader.kind.pinned if loader is not None else None
    destination = model.loaders.destination(loader) if loader is not None and pinning is not None else None
    if loader is None or pinning is None or destination is None:
        return  # without a move to an accelerator in the file pinning only costs
    given = loader.chosen(pinning)
    if rule.silent("given", given is not None and literal(given) is not False):
        return
    if given is None and (rule.silent("kwargs", loader.open) or pinning.default):
        return
    if rule.silent("constants", any(map(model.datasets.yields_constants, loader.datasets))):
        return
    if rule.silent("text", yields_text(loader, model.evaluator)):
        return
    if rule.silent("on-device", model.loaders.reads_device(loader)):
        return
    on_host = model.batches.stay_on_host(call) or model.batches.only_one(call) or model.mentions(*_REMOTE)
    if rule.silent("on-host", on_host):
        return
    value = _value(loader, destination, model)
    shown = model.shown(loader.source, "")
    whose = f"{loader.kind.title} of {shown}" if shown else loader.kind.title
    yield Finding(
        call,
        f"The batches of {whose} lie in pageable memory: each copy to the GPU goes through a staging buffer and makes "
        f"the host wait. Pass `{pinning.keyword}={value or 'True'}`.",
        _fix(loader, pinning, value, model),
    )


def _value(loader: LoaderCall, destination: Device, model: Model) -> str | None:
    """The code to pass: whether there is CUDA, where the device is chosen at run time."""
    if destination is Device.ACCELERATOR or loader.kind.moves:
        return "True"
    available = model.spelling("torch.cuda.is_available", loader.call)
    return f"{available}()" if available is not None else None


def _fix(loader: LoaderCall, pinning: Choice, value: str | None, model: Model) -> Fix | None:
    if value is None or model.vocabulary.mentions_mps or model.datasets.makes_sparse_tensors():
        return None
    pinned, call = loader.chosen(pinning), loader.call
    own = pinned is not None and model.within(pinned, call)
    if pinned is not None and not own and not model.is_partial(call):
        return None  # a mapping holds it, perhaps for other loaders too
    edit: Edit = Replace(pinned, value) if pinned is not None and own else AddKeyword(call, pinning.keyword, value)
    why = " ".join(_risks(loader, value, model))
    return Fix(f"Pass `{pinning.keyword}={value}`", (edit,), Safety.UNSAFE if why else Safety.SAFE, why)


def _risks(loader: LoaderCall, value: str, model: Model) -> Iterator[str]:
    """Yield a sentence for everything that can be different after the fix."""
    if not _is_certain(loader, model):
        yield "A batch that holds CUDA or sparse tensors, or is of a class of its own, may not be pinnable."
    if value != "True" and model.mentions(*_STARTS_PROCESSES):
        yield "A process that is forked after the loader has been made cannot use CUDA any more."
    if model.writes.may_overtake_copies:
        yield "What is written to a batch after a copy with `non_blocking=True` can reach the GPU in place of it."
    if value != "True" and model.loaders.may_decline_accelerator:
        yield "Where an option keeps the program from using CUDA, CUDA is started for the pinned memory all the same."


def _is_certain(loader: LoaderCall, model: Model) -> bool:
    """Whether the batches are fresh tensors of the CPU, and nobody asks whether they are pinned."""
    if loader.name != "torch.utils.data.DataLoader" or not (loader.collate is None or is_none(loader.collate)):
        return False
    if not loader.datasets or not all(map(model.datasets.on_host, loader.datasets)):
        return False
    if model.on_default_device(loader.call) or model.speaks_of("pin_memory", "is_pinned", "tensors"):
        return False
    # Without a batch size the items themselves are handed out: views of the tensors of a data set.
    size = loader.given.get("batch_size")
    return size is None or model.value(size).kind is Kind.NUMBER or not model.datasets.yields_views(loader.datasets)
