"""A `DataLoader` starts its worker processes anew in every epoch.

A loader with `num_workers` above 0 and without `persistent_workers=True`, in a loop over it that stands in a loop, or
handed to a trainer of Lightning, which goes over it in each epoch (and warns of it where processes are spawned).

## Why it costs

`iter(loader)` starts the workers, and the end of the loop ends them. Each start makes processes, hands them the dataset
(a copy of all of it where processes are spawned, as on Windows and macOS) and imports what the dataset needs there;
then the first batches of the epoch are waited for, since nothing has been loaded ahead. Short epochs pay most.

## What to write instead

`DataLoader(..., num_workers=N, persistent_workers=True)`: the workers, and what they have prefetched, stay. The option
exists since torch 1.7. The fix is unsafe: a dataset in a worker keeps its state from epoch to epoch and sees no change
that is made to it in the main process, workers go on with their random generators, and their memory stays taken. Nor
does the loader draw a seed for its workers from the generator of the main process in each epoch, so that a seeded run
shuffles, and draws whatever it draws on the CPU, differently from the second epoch on.

## When to ignore it

Epochs that take minutes, where a second does not matter; several loaders whose workers do not fit into memory together.

Read in `torch/utils/data/dataloader.py` of torch 2.13 (`_get_iterator` makes a new `_MultiProcessingDataLoaderIter` for
each iteration unless `persistent_workers` is set).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import CPU_COUNTS, WITH_WORKERS
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

KEEPS = "persistent_workers"

rule = Rule(
    code="TL103",
    name="dataloader-respawns-workers",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ON,
    summary="a `DataLoader` starts its workers anew in every epoch",
    triggers=Triggers.all_of(WITH_WORKERS),
    examples=(
        Example(
            bad="""
from torch.utils.data import DataLoader

def train(step, data, epochs):
    loader = DataLoader(data, batch_size=8, num_workers=4)
    for epoch in range(epochs):
        for batch in loader:
            step(batch)
""",
            good="""
from torch.utils.data import DataLoader

def train(step, data, epochs):
    loader = DataLoader(data, batch_size=8, num_workers=4, persistent_workers=True)
    for epoch in range(epochs):
        for batch in loader:
            step(batch)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
        "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
    ),
    documentation=__doc__,
    silences={
        "given": "`persistent_workers` is given, or a star argument may carry it.",
        "workers": "There are no workers, or their number is neither a constant nor that of the cores.",
        "once": "Nothing shows that the loader is iterated over more than once, or it is in one of the epochs only.",
        "changed": "The dataset, or what it is made of, is changed between epochs, which workers that stay do not see.",
        "many": "One loader of many is made, each for a client or a task, and all are kept: so would be their workers.",
        "shared": "The loader is iterated over while a loop over it runs: then both would share one iterator.",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader with workers that is iterated over in a loop."""
    loader = model.loader(call)
    if loader is None or loader.kind.workers is None or loader.kind.workers.keyword != "num_workers":
        return
    chosen = loader.chosen(loader.kind.workers)
    is_of_cores = chosen is not None and _counts_cores(chosen, model)
    workers = "one for each core" if is_of_cores else model.value(chosen).literal if chosen is not None else None
    if loader.kind.threaded or loader.kind.moves or workers is None:
        return
    if rule.silent("workers", not is_of_cores and (not isinstance(workers, int) or workers <= 0)):
        return
    if rule.silent("given", loader.open or not loader.given.absent(KEEPS)):
        return
    epochs = model.epochs.repeating(call, through_attributes=True, through_accelerators=True)
    by_trainer = epochs is None and model.kept_workers.stay_with_trainer(loader)
    is_made_anew = epochs is not None and model.epochs.makes_anew(epochs, call)
    if is_made_anew or (epochs is None and not by_trainer) or rule.silent("test", model.in_test(call)):
        return
    if rule.silent("changed", epochs is not None and _misses_changes(loader, epochs, model)):
        return
    if rule.silent("many", model.epochs.is_one_of_many(call)):
        return
    if rule.silent("shared", model.kept_workers.share_iterator(call)):
        return
    keeps = "True" if literal(chosen) is not None or chosen is None or is_of_cores else f"{model.code(chosen)} > 0"
    yield Finding(
        call,
        f"{loader.kind.title.capitalize()} starts its worker processes ({workers}) anew for each iteration over it, "
        f"and the first batches are waited for each time. Pass `{KEEPS}={keeps}`.",
        _fix(loader, keeps, model),
    )


def _counts_cores(workers: cst.BaseExpression, model: Model) -> bool:
    """Whether there is a worker for each core: `os.cpu_count()`, `cpu_count() or 1`, by a variable too."""
    if isinstance(workers, cst.BooleanOperation):
        return _counts_cores(workers.left, model)
    bindings = model.evaluator.flow.definitions(workers) if isinstance(workers, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else workers
    return isinstance(made, cst.Call) and model.qualified_name(made.func) in CPU_COUNTS


def _misses_changes(loader: LoaderCall, epochs: cst.For | cst.While, model: Model) -> bool:
    """Whether the loop over epochs calls a method of the dataset or assigns to it, or changes what workers hold."""
    if model.kept_workers.misses_changes(loader, epochs):
        return True
    names = {model.code(source) for source in loader.datasets} | {
        f"{n.value}.dataset" for n in model.epochs.names(loader.call)
    }
    return any(
        isinstance(node, cst.Attribute) and model.code(node.value) in names for node in model.descendants(epochs)
    )


def _fix(loader: LoaderCall, keeps: str, model: Model) -> Fix | None:
    if model.is_partial(loader.call):
        return None
    return Fix(
        f"Pass `{KEEPS}={keeps}`",
        (AddKeyword(loader.call, KEEPS, keeps),),
        Safety.UNSAFE,
        "Datasets in workers keep their state and random generators, and see no change made in the main process. From "
        "the second epoch on other random numbers are drawn, also for the order: torch asks for a seed only once.",
    )
