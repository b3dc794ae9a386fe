"""A dataset reads one small file after the other from a mounted Google Drive.

Its path begins with `/content/drive/` (or `/content/gdrive/`), where Colab mounts a Drive, and each item is a file of
its own: `ImageFolder` and its kin, or a `Dataset` of this file whose `__getitem__` opens a file.

## Why it costs

Each file that is opened there for the first time is a request over the network; workers only send several of them at a
time. What was read is cached on the machine as far as there is room, so that it is the first epoch of each session that
waits, and all of them if the data are large. Requests time out where a folder holds very many files, and Drive refuses
them when there have been too many.

## What to write instead

Copy an archive once, and unpack it to the disk of the machine:

```python
shutil.unpack_archive("/content/drive/MyDrive/images.zip", "/content/images")
dataset = ImageFolder("/content/images")
```

## When to ignore it

Where the data are read once.

Other slow places (network file systems, disks, buckets) have no name that tells them from fast ones: measure how many
items a `DataLoader` alone makes in a second. What is said above stands in the FAQ of Colab and in a measurement by
others; there was no Drive to try it with here.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.files import FOLDERS, READERS
from torchlint.syntax.calls import literal

MOUNTS = ("/content/drive/", "/content/gdrive/")
JOINS = frozenset(("os.path.join", "pathlib.Path", "pathlib.PosixPath", "builtins.str"))

rule = Rule(
    code="TL107",
    name="dataset-on-slow-mount",
    family=Family.DATA,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a dataset opens a file on a mounted Google Drive for each item",
    triggers=Triggers.all_of(
        "content",
        ("drive", "gdrive"),
        ("__getitem__", *sorted(name.rpartition(".")[2] for name in FOLDERS)),
    ),
    examples=(
        Example(
            bad="from torchvision.datasets import ImageFolder\n\n"
            'dataset = ImageFolder("/content/drive/MyDrive/images")\n',
        ),
    ),
    references=(
        "https://research.google.com/colaboratory/faq.html#drive-timeout",
        "https://sharkovsky.github.io/2020/09/18/colab-io-bench.html",
    ),
    documentation=__doc__,
    silences={
        "elsewhere": "The path begins otherwise, or is not plain to see.",
        "few-files": "The items come out of one file, or are in memory.",
        "kept": "The class keeps what it has read.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a dataset of files that is given a path on a mount."""
    place = next((a.value for a in call.args if _begins(a.value, model).startswith(MOUNTS)), None)
    if place is None or rule.silent("test", model.in_test(call)):
        return
    if rule.silent("few-files", not _opens_each(call, model)):
        return
    yield Finding(
        call,
        f"`{model.code(call.func)}` opens a file on the mounted Drive ({model.shown(place, 'its path')}) for each "
        "item: a request over the network. Copy an archive once, and unpack it to the local disk: "
        '`shutil.unpack_archive(..., "/content/data")`.',
    )


def _begins(path: cst.BaseExpression, model: Model, depth: int = 4) -> str:
    """Return how a path begins, "" where that is not plain to see."""
    text = literal(path)
    if isinstance(text, str) or depth == 0:
        return text if isinstance(text, str) else ""
    first: cst.CSTNode | None = None
    if isinstance(path, cst.FormattedString) and path.parts:
        part = path.parts[0]
        if isinstance(part, cst.FormattedStringText):
            return part.value
        first = part.expression if isinstance(part, cst.FormattedStringExpression) else None
    elif isinstance(path, cst.BinaryOperation) and isinstance(path.operator, (cst.Add, cst.Divide)):
        first = path.left
    elif isinstance(path, cst.Call) and path.args and model.callee(path) in JOINS:
        first = path.args[0].value
    elif isinstance(path, cst.Name):
        found = model.reaching(path)
        first = found[0].value if len(found) == 1 and not found[0].path else None
    return _begins(first, model, depth - 1) if isinstance(first, cst.BaseExpression) else ""


def _opens_each(call: cst.Call, model: Model) -> bool:
    """Whether a call makes a dataset that opens a file for each item."""
    if model.callee(call) in FOLDERS:
        return True
    dataset = model.datasets.class_of(model.value(call))
    if dataset is None or "torch.utils.data.Dataset" not in model.ancestry(dataset):
        return False
    methods = model.datasets.makes_items(dataset)
    calls = [each for method in methods for each in model.tree.below(method.body, cst.Call)]
    return any(model.callee(each) in READERS and _varies(each) for each in calls) and not rule.silent(
        "kept", any(_keeps(method, model) for method in methods)
    )


def _varies(call: cst.Call) -> bool:
    return bool(call.args) and literal(call.args[0].value) is None


def _keeps(method: cst.FunctionDef, model: Model) -> bool:
    """Whether a method writes into a container of the object, or is cached."""
    targets = (target.target for target in model.tree.below(method.body, cst.AssignTarget))
    written = any(isinstance(t, cst.Subscript) and isinstance(t.value, cst.Attribute) for t in targets)
    return written or bool(method.decorators)
