"""Worker processes put their items on the GPU.

A `Dataset` or collate function of this file moves tensors to CUDA, or makes them there, and its `DataLoader` has
workers.

## Why it costs

Workers are forked, which is the default on Linux before Python 3.14, and CUDA cannot be used in a process forked from
one that has used it: `RuntimeError: Cannot re-initialize CUDA in forked subprocess`. Where the main process has not
used CUDA yet, or workers are spawned, each worker makes a CUDA context of its own, which takes hundreds of megabytes of
GPU memory, and copies each item by itself; the tensors are shared with the main process and live on in the worker until
that has let go of them. The documentation advises against it: return tensors of the CPU.

## What to write instead

Return tensors of the CPU, let the loader pin them, and move whole batches in the training loop:

```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
for x in loader:
    x = x.to(device, non_blocking=True)
```

What is on the GPU as a whole already (a `TensorDataset` of CUDA tensors) needs no workers: `num_workers=0`.

## When to ignore it

Where a GPU library decodes in each worker on purpose.

Holds for all supported versions of torch. Read in "Multi-process data loading" on the page of `torch.utils.data`, in
"CUDA in multiprocessing" on that of `torch.multiprocessing`, and in `torch.cuda._lazy_init` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

rule = Rule(
    code="TL104",
    name="cuda-in-worker",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="worker processes of a `DataLoader` put items on the GPU",
    triggers=Triggers.all_of(WITH_WORKERS, ("cuda", "to", "device")),
    examples=(
        Example(
            bad="""
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __getitem__(self, index):
        return torch.ones(3).cuda()

loader = DataLoader(Items(), num_workers=4)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
        "https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing",
    ),
    documentation=__doc__,
    silences={
        "workers": "There are no workers, or their number is no constant.",
        "threads": "Threads make the batches, not processes.",
        "spawned": "Workers are started by another method than fork, for which somebody has thought about CUDA.",
        "host": "Items are moved to the CPU, or the file does not show to which device.",
        "asked-for": "A flag decides whether items are moved.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose workers use CUDA."""
    loader = model.loader(call)
    if loader is None or loader.kind.workers is None:
        return
    count = literal(loader.chosen(loader.kind.workers))
    if rule.silent("workers", not isinstance(count, int) or count < 1) or rule.silent("threads", loader.kind.threaded):
        return
    moves = map(model.datasets.certain_move, _makers(loader))
    move = next((move for move in moves if move is not None), None)
    if move is None or rule.silent("asked-for", model.chosen(move)):
        return
    if rule.silent("spawned", _spawns(loader, model)) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        f"The workers of {loader.kind.title} run {model.shown(move, 'a move to the GPU')}: CUDA cannot be used in "
        "forked processes, and each spawned one takes GPU memory for a context of its own. Return tensors of the CPU "
        "and move the batch in the training loop, or load without workers what is on the GPU already.",
    )


def _makers(loader: LoaderCall) -> Iterator[cst.BaseExpression]:
    yield from loader.datasets
    if loader.collate is not None:
        yield loader.collate


def _spawns(loader: LoaderCall, model: Model) -> bool:
    """Whether something says how processes are started."""
    chosen = loader.given.get("multiprocessing_context") is not None or loader.open
    names = ("set_start_method", "get_context")
    return chosen or model.speaks_of(*names) or model.names_any_of(*names)
