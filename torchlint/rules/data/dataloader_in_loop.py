"""A `DataLoader` with workers is made anew in each pass of a loop, from arguments that do not change in it.

## Why it costs

A new loader starts new worker processes, and nothing that they load ahead or keep open survives the pass; the option
that would keep them, `persistent_workers`, does nothing for a loader that is thrown away.

## What to write instead

Make the loader once before the loop, with `persistent_workers=True`, and iterate over it in each pass: every iteration
shuffles anew.

## When to ignore it

Where the dataset is changed behind the loader's back between the passes.

Holds for all supported versions of torch. Read in `torch/utils/data/dataloader.py` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

QUESTIONS = frozenset(("builtins.len", "builtins.int", "builtins.min", "os.cpu_count", "torch.cuda.is_available"))
EXPERIMENT = (Kind.MODULE, Kind.OPTIMIZER)

rule = Rule(
    code="TL112",
    name="dataloader-in-loop",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a `DataLoader` with workers is made anew in each pass of a loop",
    triggers=Triggers.all_of(WITH_WORKERS),
    examples=(
        Example(
            bad="""
from torch.utils.data import DataLoader

def train(step, data, epochs):
    for epoch in range(epochs):
        for batch in DataLoader(data, batch_size=8, shuffle=True, num_workers=4):
            step(batch)
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    documentation=__doc__,
    silences={
        "varies": "An argument changes from pass to pass: folds, curricula, subsets, what a call gives.",
        "changed": "The loop does something else with the dataset, which may change it.",
        "experiment": "Each pass makes a model or an optimizer of its own: it is a run, not an epoch.",
        "workers": "There are no workers: a loader costs next to nothing then.",
        "kwargs": "`*` or `**` arguments hide what is passed.",
        "not-iterated": "Nothing in the loop iterates over the loader.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader that a loop makes from the same arguments in each pass."""
    loader = model.loader(call)
    loop = model.steps.root(call) if loader is not None else None
    if loader is None or loader.kind.workers is None or loader.kind.moves or not isinstance(loop, LOOPS):
        return
    if rule.silent("kwargs", loader.given.open) or rule.silent("workers", loader.is_off(loader.kind.workers)):
        return
    if rule.silent("not-iterated", not model.epochs.iterated(call)):
        return
    if rule.silent("varies", any(_varies(node, loop, model) for a in call.args for node in model.descendants(a.value))):
        return
    if rule.silent("changed", _changes(loader, loop, model)) or rule.silent("experiment", _starts_over(loop, model)):
        return
    if rule.silent("test", model.in_test(call)):
        return
    data = model.shown(loader.source, "the same data")
    yield Finding(
        call,
        f"Each pass of the loop makes a new {loader.kind.title.removeprefix('this ')} of {data} and starts its workers "
        "again. Make it once before the loop, with `persistent_workers=True`.",
    )


def _varies(node: cst.CSTNode, loop: cst.For | cst.While, model: Model) -> bool:
    """Whether a part of an argument may be something else in the next pass."""
    if isinstance(node, cst.Call):
        return model.callee(node) not in QUESTIONS
    if isinstance(node, cst.Attribute):
        targets = (t.target for t in model.nodes(cst.AssignTarget) if model.within(t, loop))
        return any(model.code(target) == model.code(node) for target in targets)
    return isinstance(node, cst.Name) and any(model.within(b.node, loop) for b in model.bindings(node))


def _changes(loader: LoaderCall, loop: cst.For | cst.While, model: Model) -> bool:
    """Whether the loop uses the dataset for anything but this loader and its length."""
    data = {model.code(source) for source in loader.datasets}
    for node in model.descendants(loop):
        if (
            isinstance(node, (cst.Name, cst.Attribute))
            and model.code(node) in data
            and not model.within(node, loader.call)
        ):
            argument = model.parent(node)
            asked = model.parent(argument) if isinstance(argument, cst.Arg) else None
            if not isinstance(asked, cst.Call) or model.callee(asked) not in QUESTIONS:
                return True
    return False


def _starts_over(loop: cst.For | cst.While, model: Model) -> bool:
    made = (node.value for node in model.descendants(loop) if isinstance(node, cst.Assign))
    return any(isinstance(value, cst.Call) and model.value(value).kind in EXPERIMENT for value in made)
