"""A dataset keeps all its samples as Python objects, and every worker comes to hold a copy of them.

The samples are parsed from a file by `__init__` (`json.load`, `pickle.load`, a list of `json.loads`, `readlines`,
`to_dict("records")`), `__getitem__` takes one of them by its index, and the `DataLoader` has workers.

## Why it costs

Forked workers share the memory of the main process until somebody writes to it. Reading a Python object writes: its
reference count changes, and the whole page is copied. In the course of an epoch each worker so copies what it reads:
memory grows with the number of workers, often until the machine kills the program. Where workers are spawned, or
started by a fork server (the default of Python 3.14), the list is pickled and read back for each worker and each epoch
instead.

## What to write instead

A few arrays, which have one reference count each. Numbers become tensors; records of all sorts are kept as bytes:

```python
records = [json.dumps(record).encode() for record in json.load(file)]
self.ends = torch.tensor([len(record) for record in records]).cumsum(0)
self.data = torch.frombuffer(bytearray(b"".join(records)), dtype=torch.uint8)

def __getitem__(self, index):
    start = self.ends[index - 1] if index else 0
    record = json.loads(bytes(self.data[start : self.ends[index]].numpy()))
```

Tables of pandas or Arrow, memory maps, and the datasets of Hugging Face do the same.

## When to ignore it

Where the samples take a few megabytes: their number is not known here.

Holds for all supported versions of torch. Read in "Multi-process data loading" on the page of `torch.utils.data` of
torch 2.13 (and pytorch#13246, to which it refers), and tried with it: the private memory of a worker grew from 34 to 49
MB over one epoch of 400,000 small dictionaries, and stayed at 12 MB with tensors.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.loaders import WITH_WORKERS
from torchlint.syntax.calls import literal, method_call

BASE = "torch.utils.data.Dataset"
PARSERS = frozenset(("json.load", "json.loads", "pickle.load", "pickle.loads", "yaml.safe_load", "yaml.load")) | {
    "ujson.load",
    "orjson.loads",
    "joblib.load",
}
METHODS = ("readlines", "splitlines")

rule = Rule(
    code="TL111",
    name="list-dataset-with-workers",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a dataset keeps its samples as Python objects, of which each worker makes a copy",
    triggers=Triggers.all_of(
        WITH_WORKERS,
        "__getitem__",
        (*sorted({name.rpartition(".")[2] for name in PARSERS}), *METHODS, "to_dict"),
    ),
    examples=(
        Example(
            bad="""
import json

from torch.utils.data import DataLoader, Dataset

class Captions(Dataset):
    def __init__(self, file):
        self.captions = json.load(file)

    def __getitem__(self, index):
        return self.captions[index]["text"]

loader = DataLoader(Captions(open("captions.json")), num_workers=4)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
        "https://github.com/pytorch/pytorch/issues/13246",
    ),
    documentation=__doc__,
    silences={
        "workers": "There are no workers.",
        "other": "The samples are kept in an array, a tensor or a table, or nothing shows what they are.",
        "not-by-index": "What is parsed is looked up by something else than the index: a vocabulary, settings.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loader whose workers share a list of Python objects."""
    loader = model.loader(call)
    if loader is None or loader.kind.workers is None or loader.kind.threaded or len(loader.datasets) != 1:
        return
    held = _held(loader.datasets[0], model)
    workers = loader.chosen(loader.kind.workers)
    if rule.silent("workers", workers is None or literal(workers) == 0) or rule.silent("test", model.in_test(call)):
        return
    if not held:
        return
    yield Finding(
        call,
        f"Every worker comes to hold a copy of {held}: reading Python objects changes their reference counts, for "
        "which the memory that the workers share is copied. Keep what is read in arrays or tensors, or in a table "
        "that is mapped from a file.",
    )


def _held(expression: cst.BaseExpression, model: Model) -> str:
    """Return what a message calls the Python objects of a dataset; "" if nothing shows that it has any."""
    dataset = model.datasets.class_of(model.value(expression))
    if dataset is None:
        return model.shown(expression, "the list") if _parses(expression, model) else ""
    if BASE not in model.ancestry(dataset):
        return ""
    name = next((name for name in _by_index(dataset, model) if _is_parsed(name, dataset, model)), None)
    return f"`self.{name}` of `{dataset.name.value}`" if name is not None else ""


def _by_index(dataset: cst.ClassDef, model: Model) -> Iterator[str]:
    """Yield the attributes of which an item takes what stands at its index."""
    method = model.definitions.method(dataset, "__getitem__")
    if method is None or len(method.params.params) != 2:
        return
    index = method.params.params[1].name.value
    for subscript in model.tree.below(method.body, cst.Subscript):
        owner, place = subscript.value, subscript.slice[0].slice
        if not isinstance(owner, cst.Attribute) or not isinstance(owner.value, cst.Name) or len(subscript.slice) != 1:
            continue
        by_index = isinstance(place, cst.Index) and isinstance(place.value, cst.Name) and place.value.value == index
        if model.definitions.receiver(owner.value) is not None and not rule.silent("not-by-index", not by_index):
            yield owner.attr.value


def _is_parsed(name: str, dataset: cst.ClassDef, model: Model) -> bool:
    """Whether an attribute is nothing but what is parsed from a file."""
    values = [binding.value for binding in model.definitions.attribute(dataset, name) if not binding.path]
    return bool(values) and all(value is not None and _parses(value, model) for value in values)


def _parses(value: cst.BaseExpression, model: Model) -> bool:
    if isinstance(value, cst.ListComp):
        return _parses(value.elt, model)
    if isinstance(value, cst.Name):
        bound = [binding.value for binding in model.reaching(value) if not binding.path]
        return bool(bound) and all(v is not None and not isinstance(v, cst.Name) and _parses(v, model) for v in bound)
    if not isinstance(value, cst.Call):
        return False
    name = model.callee(value)
    if name == "builtins.list" and len(value.args) == 1:
        return _parses(value.args[0].value, model)
    records = method_call(value, "to_dict") is not None and any(literal(a.value) == "records" for a in value.args)
    return name in PARSERS or records or (name is None and method_call(value, *METHODS) is not None)
