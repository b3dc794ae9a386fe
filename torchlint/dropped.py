"""Rules that were planned and will not come, wrong or part of another one; their codes and names are not used again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dropped:
    """One rule that will not come."""

    code: str
    name: str
    meant: str
    """What it was to report."""

    why: str
    """What showed that this costs nothing, or that it cannot be told from what is right."""


DROPPED = (
    Dropped(
        "TL406",
        "compile-in-loop",
        "`torch.compile` of the same function or module on every step",
        "it compiles once all the same: for a function, a module, a lambda and a module made anew in each of a hundred "
        "steps torch 2.13 made one graph, for a closure over the number of the step two",
    ),
    Dropped(
        "TL902",
        "loader-unseeded",
        "a `DataLoader` without `generator` and `worker_init_fn`",
        "one `torch.manual_seed` is enough: with torch 2.13 two runs of a shuffling loader with two workers gave the "
        "same order, and the same numbers of `torch`, `random` and `numpy.random` in the workers, other ones in each "
        "epoch",
    ),
    Dropped(
        "TL906",
        "f1-without-auc",
        "an F1 score without the area under a curve",
        "a score at one threshold is right where the threshold is what is used, which the code does not say",
    ),
)


@dataclass(frozen=True, slots=True)
class Covered:
    """One rule that will not come, since another one finds all that it was to report."""

    code: str
    name: str
    meant: str
    """What it was to report."""

    by: str
    """The code of the rule that reports it."""


COVERED = (
    Covered(
        "TL314",
        "deprecated-amp-entry",
        "`autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of `torch.cuda.amp` and `torch.cpu.amp`",
        "TL802",
    ),
)
