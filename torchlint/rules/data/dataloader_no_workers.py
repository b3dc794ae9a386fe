"""A `DataLoader` without workers loads every batch in the training process.

## Why it costs

With `num_workers=0`, which is the default, reading, decoding, augmenting and collating a batch happen in the process
that also queues work for the GPU. The GPU idles while a batch is made, and Python makes no batch while it trains.
Worker processes make the next batches in the meantime.

## What to write instead

`DataLoader(dataset, num_workers=4)`: a few per GPU to begin with, then measured; the setting `num-workers` is what
the fix writes. With workers, `persistent_workers=True` keeps them alive between epochs (torch 1.7 and newer).

The fix is unsafe. Worker processes need a dataset and a collate function that can be pickled where processes are
spawned (Windows, macOS), and a main module that can be imported; and random augmentations draw from other streams. No
fix is offered for an `IterableDataset` that does not ask `get_worker_info()`: each worker would yield every item.

## When to ignore it

The items are in memory already and cheap to collate (the rule is silent where it sees that), the loader is used once,
or the dataset holds something that cannot be shared with a process. Suppress it with `# torchlint: ignore[TL101]` and
the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import DEVICE_LOADERS, LOADERS
from torchlint.syntax.calls import Arguments, literal

_CHECKED = LOADERS - DEVICE_LOADERS

rule = Rule(
    code="TL101",
    name="dataloader-no-workers",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ON,
    summary="A DataLoader without workers loads batches in the training process",
    triggers=Triggers.all_of(frozenset(name.rpartition(".")[2] for name in _CHECKED)),
    examples=(
        Example(
            bad="from torch.utils.data import DataLoader\n\n"
            "def make_loader(dataset):\n    return DataLoader(dataset, batch_size=64)\n",
            good="from torch.utils.data import DataLoader\n\n"
            "def make_loader(dataset):\n    return DataLoader(dataset, batch_size=64, num_workers=4)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation",
    ),
    documentation=__doc__,
    silences={
        "given": "`num_workers` is given by an expression: somebody has thought about it.",
        "kwargs": "`*` or `**` arguments may carry `num_workers`.",
        "in-memory": "The items are in memory already: workers would only copy them between processes.",
        "handle": "The dataset keeps an open file or database, which processes cannot share.",
        "on-device": "The dataset or the collate function makes CUDA tensors, which workers must not.",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
        "subclass": "A subclass is defined or constructs itself: its users choose the workers.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader that has no workers."""
    if model.callee(call) not in _CHECKED:
        return
    given = model.arguments(call)
    workers = given.get("num_workers")
    if rule.silent("given", workers is not None and literal(workers) != 0):
        return
    if rule.silent("kwargs", workers is None and given.open):
        return
    dataset = given.get("dataset")
    if dataset is not None and _is_better_without(dataset, given, model):
        return
    yield Finding(call, _message(dataset, workers, model), _fix(call, given, model))


def _is_better_without(dataset: cst.BaseExpression, given: Arguments, model: Model) -> bool:
    """Whether worker processes cannot help with this dataset, or cannot work."""
    if rule.silent("in-memory", model.datasets.in_memory(dataset)):
        return True
    if rule.silent("handle", model.datasets.holds_handle(dataset)):
        return True
    collate = given.get("collate_fn")
    on_device = model.datasets.yields_device_tensors(dataset)
    return rule.silent(
        "on-device", on_device or (collate is not None and model.datasets.yields_device_tensors(collate))
    )


def _message(dataset: cst.BaseExpression | None, workers: cst.BaseExpression | None, model: Model) -> str:
    shown = model.code(dataset) if dataset is not None else "the dataset"
    shown = f"`{shown}`" if "\n" not in shown and len(shown) <= 60 else "the dataset"
    why = "`num_workers=0`" if workers is not None else "no `num_workers`, and the default is 0"
    return (
        f"This loader of {shown} has {why}: every batch is loaded in the training process, and the device possibly "
        f"waits for it. "
        f"Pass `num_workers={model.options.num_workers}` and measure."
    )


def _fix(call: cst.Call, given: Arguments, model: Model) -> Fix | None:
    dataset, workers = given.get("dataset"), given.get("num_workers")
    if dataset is not None and model.datasets.is_iterable(dataset):
        return None
    count = str(model.options.num_workers)
    own = workers is not None and model.within(workers, call)
    edit: Edit = Replace(workers, count) if own and workers is not None else AddKeyword(call, "num_workers", count)
    return Fix(
        f"Load with {count} worker processes",
        (edit,),
        Safety.UNSAFE,
        "Worker processes must be able to import the main module and to pickle the dataset, and random augmentations "
        "draw other numbers.",
    )
