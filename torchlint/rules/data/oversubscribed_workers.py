"""The workers of a `DataLoader` want more cores than any machine has: they are a multiple of its cores.

`num_workers=2 * os.cpu_count()` (or a larger factor), and a `worker_init_fn` that gives each worker as many threads as
the machine has cores: `torch.set_num_threads(os.cpu_count())`.

## Why it costs

A worker that decodes or transforms keeps one core busy, for which torch runs it with one thread. More workers or
threads than cores take turns: the system switches between them, their data push each other out of the caches, threads
wait at barriers for others that do not run, and the main process, which launches the kernels, has to wait for its turn
too. Each worker also holds `prefetch_factor` batches and its own copy of whatever the dataset carries.

## What to write instead

As many workers as it takes to keep the GPU busy, and at most the cores that one process may use, divided by the
processes on the machine: `num_workers=len(os.sched_getaffinity(0)) - 1`. Leave the number of threads alone: torch sets
it to 1 in each worker.

## When to ignore it

Where workers mostly wait, for files over a network.

A constant number is not judged: how many cores there will be is not known here, and torch itself warns at run time when
`num_workers` is more than it finds. Holds for all supported versions of torch; read in `torch/utils/data/dataloader.py`
and `torch/utils/data/_utils/worker.py` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import CPU_COUNTS, WITH_WORKERS
from torchlint.syntax.calls import literal

THREADS = "torch.set_num_threads"

rule = Rule(
    code="TL106",
    name="oversubscribed-workers",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ADVICE,
    summary="workers or their threads are a multiple of the cores of the machine",
    triggers=Triggers.all_of(WITH_WORKERS, "cpu_count"),
    examples=(
        Example(
            bad="import os\n\nfrom torch.utils.data import DataLoader\n\n"
            "loader = DataLoader(data, num_workers=4 * os.cpu_count())\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    documentation=__doc__,
    silences={
        "fewer": "The workers are at most the cores, or their number is a constant or a setting.",
        "limited": "Something limits the number: `min(...)`.",
        "one-worker": "There is one worker, or none, which may use all the cores.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose workers want more cores than there are."""
    loader = model.loader(call)
    if loader is None or loader.kind.workers is None or rule.silent("test", model.in_test(call)):
        return
    workers = loader.chosen(loader.kind.workers)
    if workers is None:
        return
    factor = _factor(workers, model)
    if factor > 1:
        yield Finding(
            call,
            f"{factor} workers for each core of the machine take turns, and the main process has to wait for its turn "
            "too. Use at most as many workers as there are cores for this process.",
        )
        return
    start = loader.given.get("worker_init_fn")
    if start is None or rule.silent("one-worker", literal(workers) in (0, 1)):
        return
    threads = next((each for each in _calls(start, model) if _takes_all_cores(each, model)), None)
    if threads is not None:
        yield Finding(
            call,
            f"{model.shown(threads, '`worker_init_fn`')} gives each worker as many threads as the machine has cores. "
            "Leave it out: torch runs each worker with one thread.",
        )


def _factor(workers: cst.BaseExpression, model: Model, depth: int = 3) -> int:
    """Return how many workers there are for each core, 0 where that is not plain to see."""
    if isinstance(workers, cst.Call):
        if model.callee(workers) == "builtins.int" and len(workers.args) == 1:
            return _factor(workers.args[0].value, model, depth)
        return 1 if model.callee(workers) in CPU_COUNTS else 0
    if isinstance(workers, cst.Name) and depth:
        found = model.reaching(workers)
        value = found[0].value if len(found) == 1 and not found[0].path else None
        return _factor(value, model, depth - 1) if value is not None else 0
    if not isinstance(workers, cst.BinaryOperation) or not isinstance(workers.operator, cst.Multiply):
        return 0
    factors = (literal(side) for side in (workers.left, workers.right))
    number = next((each for each in factors if isinstance(each, int)), 0)
    return number * max(_factor(side, model, depth) for side in (workers.left, workers.right))


def _calls(start: cst.BaseExpression, model: Model) -> Iterator[cst.Call]:
    """Yield the calls that start a worker."""
    function = model.definition(start)
    if isinstance(start, cst.Lambda):
        yield from model.tree.below(start.body, cst.Call)
    elif isinstance(function, cst.FunctionDef):
        yield from model.tree.below(function.body, cst.Call)


def _takes_all_cores(call: cst.Call, model: Model) -> bool:
    if model.callee(call) != THREADS or not call.args:
        return False
    return _factor(call.args[0].value, model) > 0
