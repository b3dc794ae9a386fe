"""A `DataLoader` without workers is given options that are for workers, and raises.

`persistent_workers=True`, `prefetch_factor=N` or `multiprocessing_context="..."` where `num_workers` is 0, or left out,
which is the same.

## Why it costs

The call raises `ValueError`: there are no processes to keep, to prefetch or to start. The options were meant to hide
the time that loading takes; what they need is `num_workers`.

## What to write instead

`num_workers=N` with them (see TL101), or none of them. The fix leaves the options out. It is unsafe only in that code
that catches the error goes another way.

## When to ignore it

Never: the call cannot succeed from torch 2.0 on. Before, `prefetch_factor=2` was the default and did not raise; all the
rest raised in every supported version. Read in `torch/utils/data/dataloader.py` of torch 1.13, 2.3 and 2.13, and tried
with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import RemoveArgument
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.loading.loaders import LoaderCall

OPTIONS = ("persistent_workers", "prefetch_factor", "multiprocessing_context")

rule = Rule(
    code="TL110",
    name="workerless-options",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a `DataLoader` without workers is given options for workers, and raises",
    triggers=Triggers.all_of(WITH_WORKERS, OPTIONS),
    examples=(
        Example(
            bad="from torch.utils.data import DataLoader\n\nloader = DataLoader(data, persistent_workers=True)\n",
            good="from torch.utils.data import DataLoader\n\nloader = DataLoader(data)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",),
    documentation=__doc__,
    silences={
        "workers": "There are workers, or a variable decides.",
        "kwargs": "`*` or `**` arguments may carry `num_workers`.",
        "off": "The option is None or False, or a variable decides.",
        "other-class": "The class is not torch's `DataLoader` nor one that is known to pass its arguments on.",
        "survives": "A `try` catches the error and goes on.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader without workers that is given options for workers."""
    loader = model.loader(call)
    given = _given(loader) if loader is not None else []
    if loader is None or not given or rule.silent("kwargs", loader.open):
        return
    if rule.silent("workers", not _has_none(loader)):
        return
    if rule.silent("survives", model.choices.survives_error(call, "ValueError")) or rule.silent(
        "test", model.in_test(call)
    ):
        return
    shown = " and ".join(f"`{name}`" for name in given)
    yield Finding(
        call,
        f"{loader.kind.title.capitalize()} has no workers and is given {shown}: the call raises `ValueError`. "
        "Pass `num_workers` as well, or leave them out.".replace("them", "it" if len(given) == 1 else "them"),
        _fix(loader, given, model),
    )


def _given(loader: LoaderCall) -> list[str]:
    """Return the options for workers that are certainly switched on."""
    if loader.kind.workers is None or loader.kind.workers.keyword != "num_workers" or loader.kind.threaded:
        return []
    values = ((name, literal(loader.given.get(name))) for name in OPTIONS)
    return [name for name, value in values if value is True or (value is not None and value is not False)]


def _has_none(loader: LoaderCall) -> bool:
    workers = loader.kind.workers
    return workers is not None and loader.is_off(workers)


def _fix(loader: LoaderCall, given: list[str], model: Model) -> Fix | None:
    arguments = [loader.given.nodes[name] for name in given if name in loader.given.nodes]
    if len(arguments) != len(given) or not all(model.within(argument, loader.call) for argument in arguments):
        return None  # a mapping or a partial holds them, perhaps for other loaders too
    return Fix(
        "Leave out the options for workers",
        tuple(RemoveArgument(loader.call, argument) for argument in arguments),
        Safety.UNSAFE,
        "Code that catches the error of the call goes another way.",
    )
