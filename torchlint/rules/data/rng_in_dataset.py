"""A dataset draws from a generator that was made once: every worker process draws the same numbers.

A `numpy.random.RandomState`, `numpy.random.default_rng()`, `random.Random` or `torch.Generator` is kept in an
attribute, or in a variable of the module, and asked for numbers in `__getitem__`.

## Why it costs

Each worker of a `DataLoader` gets a copy of the dataset, and with it a copy of the generator in the state in which it
was made, seeded or not. All workers go through the same sequence: with four of them, four items share each draw. New
workers are started for every epoch, from the same copy, so that every epoch draws what the first one drew (unless
`persistent_workers=True`). Augmentation and sampling are then much less random than they look, and nothing says so.

## What to write instead

Generators that the loader seeds in each worker: `torch.rand(())`, `random.random()` or (from torch 1.9 on)
`numpy.random.rand()`, without an object of your own. Or make the generator in the worker:

```python
def __getitem__(self, index):
    if self.rng is None:
        self.rng = np.random.default_rng(torch.initial_seed())
```

The generator of `numpy.random` itself is only seeded in workers from torch 1.9 on: where the project supports an older
one, the rule reports it too.

`torch.initial_seed()` is another number in each worker and each epoch. Where an item is to be the same in every epoch,
seed by its index: `np.random.default_rng((self.seed, index))`.

## When to ignore it

Where the dataset is never loaded by workers.

Holds for all supported versions of torch. Read in "Randomness in multi-process data loading" on the page of
`torch.utils.data` of torch 2.13, and tried with it: two workers gave the same four numbers each, in both epochs.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tensors.random_generators import GENERATORS

NUMPY = "numpy.random"
NUMPY_SEEDED = (1, 9)
MAP_STYLE = ("torch.utils.data.Dataset", "torchvision.datasets.", "torch_geometric.data.Dataset")
PER_WORKER = ("get_worker_info", "worker_init_fn", "initial_seed", "worker_id", "worker_seed")

rule = Rule(
    code="TL105",
    name="rng-in-dataset",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="every worker draws the same numbers from a generator that the dataset carries",
    triggers=Triggers.all_of("__getitem__", ("random", *(name.rpartition(".")[2] for name in sorted(GENERATORS)))),
    examples=(
        Example(
            bad="""
import numpy as np
from torch.utils.data import Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return index + self.rng.normal()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#randomness-in-multi-process-data-loading",),
    documentation=__doc__,
    silences={
        "per-worker": "Something in the file tells workers apart: `get_worker_info`, `worker_init_fn`, `initial_seed`.",
        "seeded-anew": "The generator is made or seeded anew elsewhere too: for each item, epoch or worker.",
        "not-per-item": "Items are made without it: it serves once, when the dataset is made.",
        "no-workers": "The loaders of the file that are given the dataset have no workers.",
        "not-map-style": "The class is no map-style dataset of torch.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.ClassDef)
def check(class_def: cst.ClassDef, model: Model) -> Iterator[Finding]:
    """Report a generator that a dataset makes at its start and draws from for each item."""
    generators = list(model.random_generators.carried(class_def))
    calls = [c for method in model.datasets.makes_items(class_def) for c in model.tree.below(method.body, cst.Call)]
    shared = {name: call for call in calls if (name := model.random_generators.of_module(call))}
    of_numpy = [call for call in calls if model.target.lacks(NUMPY_SEEDED) and model.random_generators.of_numpy(call)]
    if of_numpy:
        shared[NUMPY] = of_numpy[0]
    if not (generators or shared) or rule.silent("not-map-style", not _is_map_style(class_def, model)):
        return
    if _knows_workers(model) or rule.silent("no-workers", _loaded_without_workers(class_def, model)):
        return
    if rule.silent("test", model.in_test(class_def)):
        return
    for generator in generators:
        if rule.silent("seeded-anew", generator.anew):
            continue
        draw = next((call for call in calls if model.random_generators.draws(call, generator)), None)
        if not rule.silent("not-per-item", draw is None):
            yield Finding(generator.made, _message(f"self.{generator.name}", draw, model))
    for name, call in shared.items():
        yield Finding(call, _message(name, call, model))


def _message(generator: str, draw: cst.Call | None, model: Model) -> str:
    seeded = "`torch.rand` or `random`" if generator == NUMPY else "`torch.rand`, `random` or `numpy.random`"
    return (
        f"Every worker gets a copy of `{generator}` in the same state, so that all workers, in every epoch, draw the "
        f"same numbers in {model.shown(draw, '`__getitem__`')}. Draw from {seeded}, which the loader seeds in each "
        "worker, or make a generator in the worker from `torch.initial_seed()`."
    )


def _is_map_style(class_def: cst.ClassDef, model: Model) -> bool:
    ancestry = model.ancestry(class_def)
    return any(name.startswith(MAP_STYLE) for name in ancestry) and not any("Iterable" in name for name in ancestry)


def _knows_workers(model: Model) -> bool:
    """Whether a name, an attribute or an argument in the file tells workers apart."""
    keywords = (argument.keyword.value for argument in model.nodes(cst.Arg) if argument.keyword is not None)
    named = model.speaks_of(*PER_WORKER) or model.names_any_of(*PER_WORKER)
    return named or any(keyword in PER_WORKER for keyword in keywords)


def _loaded_without_workers(class_def: cst.ClassDef, model: Model) -> bool:
    """Whether the file gives the dataset to loaders, and none of them can have workers."""
    loaders = [loader for call in model.nodes(cst.Call) if (loader := model.loader(call)) is not None]
    own = [
        loader
        for loader in loaders
        if any(model.datasets.class_of(model.value(dataset)) is class_def for dataset in loader.datasets)
    ]
    return bool(own) and all(
        not loader.open and loader.kind.workers is not None and loader.is_off(loader.kind.workers) for loader in own
    )
