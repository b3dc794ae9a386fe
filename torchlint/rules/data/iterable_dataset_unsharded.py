"""Every worker of a `DataLoader` goes through the whole of an `IterableDataset`, so that each item comes several times.

The class stands in this file, its `__iter__` goes through something that is the same in each process (a file, a range,
a list), and nobody asks which worker it is.

## Why it costs

Each worker process has a copy of the dataset and iterates over all of it. With four workers an epoch has every item
four times: the number of epochs and of steps is not what it seems, and evaluation takes each example several times.

## What to write instead

```python
def __iter__(self):
    worker = torch.utils.data.get_worker_info()
    start, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
    with open(self.path) as lines:
        yield from itertools.islice(lines, start, None, step)
```

or configure the copies in a `worker_init_fn`, or use a map-style `Dataset`, whose indices the loader shares out.

## When to ignore it

Where an item is meant to come once per worker.

Holds for all supported versions of torch. Read in the documentation of `torch.utils.data.IterableDataset` of torch
2.13, and tried with it: two workers give each line of a file twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal

BASE = "torch.utils.data.IterableDataset"
SHARES = re.compile(r"worker_?(info|id|init|index|idx|rank|num)|split_by|shard|islice|rank|world_size", re.IGNORECASE)
FILES = frozenset(("builtins.open", "gzip.open", "bz2.open", "lzma.open", "io.open"))
SAME = FILES | {"builtins.range", "glob.glob", "glob.iglob", "os.listdir", "os.walk", "os.scandir"}
WRAPPERS = frozenset(
    ("builtins.enumerate", "builtins.sorted", "builtins.list", "builtins.iter", "builtins.zip", "builtins.reversed")
) | {"csv.reader", "csv.DictReader", "tqdm.tqdm", "tqdm.auto.tqdm"}
HELD = frozenset((Kind.SEQUENCE, Kind.NDARRAY, Kind.TENSOR))
RANDOM = ("random.", "numpy.random.", "torch.rand", "torch.multinomial", "itertools.")

rule = Rule(
    code="TL113",
    name="iterable-dataset-unsharded",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="every worker goes through the whole of an `IterableDataset`",
    triggers=Triggers.all_of("IterableDataset", WITH_WORKERS),
    examples=(
        Example(
            bad="""
from torch.utils.data import DataLoader, IterableDataset

class Lines(IterableDataset):
    def __iter__(self):
        with open("lines.txt") as lines:
            yield from lines

loader = DataLoader(Lines(), num_workers=4)
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset",),
    documentation=__doc__,
    silences={
        "shares": "Something in the file tells workers or processes apart, or shares data out.",
        "workers": "There is at most one worker, or their number is no constant.",
        "kwargs": "`*` or `**` arguments may carry a `worker_init_fn`.",
        "stream": "The items are drawn at random or never end, so that each worker gives others.",
        "unknown": "Nothing shows what is iterated over: it may share itself out, as datasets of Hugging Face do.",
        "map-style": "The dataset is not iterable: the loader shares its indices out.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose workers all iterate over the same."""
    loader = model.loader(call)
    if loader is None or loader.kind.workers is None or len(loader.datasets) != 1:
        return
    count = literal(loader.chosen(loader.kind.workers))
    if rule.silent("workers", not isinstance(count, int) or count < 2) or rule.silent("kwargs", loader.open):
        return
    dataset = model.datasets.class_of(model.value(loader.datasets[0]))
    if dataset is None or rule.silent("map-style", BASE not in model.ancestry(dataset)):
        return
    iterates = model.definitions.method(dataset, "__iter__")
    if iterates is None or rule.silent("stream", _draws(iterates, model)):
        return
    sources = list(_sources(iterates, model))
    if rule.silent("unknown", not sources or not all(_is_same(source, model) for source in sources)):
        return
    if _shares(model) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        f"Each of the {model.code(loader.chosen(loader.kind.workers) or call)} workers goes through the whole of "
        f"`{dataset.name.value}`, so that every item comes that many times. Share the items out in `__iter__` by "
        "`torch.utils.data.get_worker_info()`.",
    )


def _sources(function: cst.FunctionDef, model: Model) -> Iterator[cst.BaseExpression]:
    """Yield what a function goes through: its outermost loops, what it hands on and what it returns an iterator of."""
    for node in model.descendants(function.body):
        if isinstance(node, cst.For) and not _in_loop(node, function, model):
            yield node.iter
        elif (
            isinstance(node, cst.From)
            and isinstance(model.parent(node), cst.Yield)
            and not _in_loop(node, function, model)
        ):
            yield node.item
        elif isinstance(node, cst.Return) and node.value is not None:
            yield node.value


def _in_loop(node: cst.CSTNode, function: cst.FunctionDef, model: Model) -> bool:
    loop = model.enclosing(node, cst.For)
    return loop is not None and model.within(loop, function)


def _is_same(source: cst.BaseExpression, model: Model) -> bool:
    """Whether a source is the same in every process, and does not share itself out."""
    if isinstance(source, cst.Call):
        name = model.callee(source)
        if name in WRAPPERS:
            return bool(source.args) and all(_is_same(a.value, model) for a in source.args if a.keyword is None)
        return name in SAME
    if isinstance(source, cst.Name):
        bindings = model.reaching(source)
        opened = [b.value for b in bindings if b.kind is BindingKind.CONTEXT]
        if opened and len(opened) == len(bindings):
            return all(isinstance(value, cst.Call) and model.callee(value) in FILES for value in opened)
    return model.value(source).kind in HELD


def _draws(function: cst.FunctionDef, model: Model) -> bool:
    """Whether a function draws random numbers, or goes on without end."""
    for node in model.descendants(function.body):
        if isinstance(node, cst.While):
            return True
        if isinstance(node, cst.Call) and (model.callee(node) or "").startswith(RANDOM):
            return True
    return False


def _shares(model: Model) -> bool:
    """Whether a name in the file speaks of telling workers or processes apart."""
    nodes = (node for kind in (cst.Name, cst.Attribute, cst.Arg) for node in model.nodes(kind))
    names = (
        identifier(node.keyword) if isinstance(node, cst.Arg) and node.keyword else identifier(node) for node in nodes
    )
    return any(SHARES.search(name) and name != "num_workers" for name in names)
