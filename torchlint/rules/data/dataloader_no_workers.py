"""A `DataLoader` without workers loads every batch in the training process.

## Why it costs

With `num_workers=0`, which is the default, reading, decoding, augmenting and collating a batch happen in the process
that also queues work for the GPU. The GPU idles while a batch is made, and Python makes no batch while it trains.
Worker processes make the next batches in the meantime.

## What to write instead

`DataLoader(dataset, num_workers=4)`: a few per GPU to begin with, then measured; the setting `num-workers` is what
the fix writes. With workers, `persistent_workers=True` keeps them alive between epochs (torch 1.7 and newer).

Hugging Face's trainers make their loaders themselves: `TrainingArguments(..., dataloader_num_workers=4)`. timm's
`create_loader` has one worker unless it is told otherwise. The loaders of torch-geometric, MONAI, SpeechBrain
(`SaveableDataLoader`), DGL (`GraphDataLoader`) and webdataset (`WebLoader`) have none, as torch's.

The fix is unsafe. Worker processes need a dataset and a collate function that can be pickled where processes are not
forked (Windows, macOS, Linux from Python 3.14 on), which no lambda or local function can be, and a main module that can
be imported; random augmentations draw from other streams; and what a dataset notes about itself stays in its worker. No
fix is offered for an `IterableDataset` that does not ask `get_worker_info()`: each worker would yield every item.

## When to ignore it

The items are in memory already and cheap to collate (the rule is silent where it sees that), the loader is used once
or in the processes of a pool, or the dataset holds something that cannot be shared with a process. Suppress it with
`# torchlint: ignore[TL101]` and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.loading.item_sources import collates_with_work, is_for_jax
from torchlint.semantics.loading.pool_processes import is_daemonic
from torchlint.semantics.loading.unsharded import is_unsharded
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS, Choice

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

rule = Rule(
    code="TL101",
    name="dataloader-no-workers",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ON,
    summary="a `DataLoader` without workers loads batches in the training process",
    triggers=Triggers.all_of(WITH_WORKERS),
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
        "in-memory": "The items are in memory already, or a queue that the program fills: workers would only copy them "
        "between processes.",
        "own-thread": "MONAI's `ThreadDataLoader` makes its batches in a thread, which its documentation prefers to "
        "processes.",
        "jax": "It loads for JAX, whose threads do not live on in worker processes.",
        "handle": "The dataset keeps an open file or database, which processes cannot share.",
        "on-device": "The dataset or the collate function makes CUDA tensors, which workers must not.",
        "daemonic": "It is made in the processes of a `multiprocessing.Pool`, which must not have children.",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
        "one-batch": "Nothing but single batches is ever taken, `next(iter(loader))`, or all callers drop the loader.",
        "written-back": "The loop over the batches writes to the dataset, which copies in worker processes would miss.",
        "subclass": "A subclass is defined or constructs itself: its users choose the workers.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=WITH_WORKERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader that has no workers."""
    loader = model.loader(call)
    if loader is None:
        return
    workers = loader.kind.workers
    if workers is None or rule.silent("own-thread", loader.kind.threaded):
        return
    given = loader.chosen(workers)
    if rule.silent("given", given is not None and not loader.is_off(workers)):
        return
    if given is None and (rule.silent("kwargs", loader.open) or workers.default):
        return
    if rule.silent("jax", is_for_jax(call, model.evaluator)) or _is_better_without(loader, model):
        return
    yield Finding(call, _message(loader, workers, model), _fix(loader, workers, model))


def _is_better_without(loader: LoaderCall, model: Model) -> bool:
    """Whether worker processes cannot help with this dataset, or cannot work."""
    datasets = loader.datasets
    is_idle = bool(datasets) and not collates_with_work(loader.collate, model.evaluator)
    if rule.silent("in-memory", is_idle and all(map(model.datasets.in_memory, datasets))):
        return True
    if rule.silent("handle", any(map(model.datasets.holds_handle, datasets))):
        return True
    if rule.silent("one-batch", model.batches.only_one(loader.call)):
        return True
    if rule.silent("daemonic", is_daemonic(loader.call, model.evaluator)):
        return True
    if rule.silent("written-back", model.kept_workers.misses_writes(loader)):
        return True
    return rule.silent("on-device", model.loaders.reads_device(loader))


def _message(loader: LoaderCall, workers: Choice, model: Model) -> str:
    shown = model.shown(loader.source, "the dataset")
    off = f"`{workers.keyword}=0`" if loader.chosen(workers) is not None else f"no `{workers.keyword}`"
    default = ", and the default is 0" if loader.chosen(workers) is None else ""
    first = "Let it share its items out by `get_worker_info()`, then pass" if _is_whole(loader, model) else "Pass"
    return (
        f"{loader.kind.title.capitalize()} of {shown} has {off}{default}: every batch is loaded in the training "
        f"process, and the device possibly waits for it. {first} `{workers.keyword}={model.options.num_workers}` and "
        "measure."
    )


def _is_whole(loader: LoaderCall, model: Model) -> bool:
    """Whether each worker would yield all items of the dataset."""
    return any(
        is_unsharded(dataset, model.datasets.class_of(model.value(dataset)), model.evaluator)
        for dataset in loader.datasets
    )


def _fix(loader: LoaderCall, workers: Choice, model: Model) -> Fix | None:
    if _is_whole(loader, model):
        return None
    count, given = str(model.options.num_workers), loader.chosen(workers)
    own = given is not None and model.within(given, loader.call)
    if given is not None and not own and not model.is_partial(loader.call):
        return None  # a mapping holds it, perhaps for other loaders too
    edit: Edit = Replace(given, count) if own and given is not None else AddKeyword(loader.call, workers.keyword, count)
    return Fix(
        f"Load with {count} worker processes",
        (edit,),
        Safety.UNSAFE,
        "Where processes are not forked, workers must be able to import the main module and to pickle the dataset and "
        "the collate function, which no lambda or local function can be; random augmentations draw other numbers, and "
        "what the dataset notes about itself stays there.",
    )
