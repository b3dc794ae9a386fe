"""Loaders over tensors and over a stand-in for torchvision, with batches of every kind, on a machine that pins."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.observe import Difference
from tests.refute.search import Program, Search
from tests.torch.stand_in import META, VALUES

_TENSORS = (
    "torch.arange(6)",
    "torch.ones(6, 2)",
    "torch.rand(6, 3)",
    "torch.zeros(6, 2, 2)",
    "torch.rand(6, 2, requires_grad=True)",
    "torch.tensor([1, 2, 3, 4, 5, 6])",
    "torch.zeros(0, 2)",
    "torch.ones(6, dtype=torch.bool)",
    "torch.eye(6).to_sparse()",
    "torch.ones(6, 2, device=device)",
    "torch.ones(6, 2, device='cuda')",
    "torch.ones(6, 2).cuda()",
    "torch.ones(1, 2).expand(6, 2)",
    "features",
    "labels",
    "features.t()[:6]",
    "torch.from_numpy(np.ones((6, 2)))",
)
_DATASETS = (
    "datasets.MNIST('data')",
    "datasets.MNIST('data', transform=None)",
    "datasets.MNIST('data', transform=as_tensor)",
    "datasets.MNIST('data', True, as_tensor)",
    "datasets.MNIST('data', transform=to_device)",
    "datasets.MNIST('data', transform=lambda x: as_tensor(x).cuda())",
    "datasets.MNIST('data', transform=as_sparse)",
    "datasets.MNIST('data', transform=as_own)",
    "datasets.MNIST('data', transform=as_pair)",
    "datasets.MNIST('data', transform=as_kept)",
    "datasets.FakeData(transform=as_tensor, target_transform=to_device)",
    "datasets.FakeData(transform=as_tensor)",
    "Rows(features)",
    "Subset(TensorDataset(features), [0, 2])",
    "mnist",
)
_OPTIONS = (
    "batch_size=2",
    "batch_size=4",
    "batch_size=None",
    "batch_size=size",
    "shuffle=True",
    "drop_last=True",
    "num_workers=0",
    "pin_memory=False",
    "collate_fn=None",
    "collate_fn=collate",
    "collate_fn=lambda rows: rows",
    "generator=torch.Generator()",
    "sampler=[0, 1, 2]",
    "batch_sampler=[[0, 1], [2]]",
)
_USES = (
    "for batch in loader: seen.append([part.to(device) for part in batch])",
    "for batch in loader: seen.append(batch)",
    "first = next(iter(loader)); seen.append(first)",
    "for batch in loader:\n    for part in batch: part.mul_(2)",
    "for batch in loader:\n    batch[0] += 1\n    seen.append(batch[0].cuda())",
    "kept = list(loader)",
    "for x, *rest in loader: seen.append((x.cuda() * 2).sum())",
    "seen.append(loader.pin_memory)",
    "seen.append([part.is_pinned() for part in next(iter(loader))])",
    "for x, *rest in loader: (x * weight).sum().backward()",
    "for x, *rest in loader: seen.append(x.requires_grad); x.sum().backward()",
    "for x, *rest in loader: x.resize_(9).zero_()",
    "dataset.tensors = tuple(t.cuda() for t in dataset.tensors)\nfor batch in loader: seen.append(batch)",
    "features += 1",
    "print(len(loader))",
    "pairs = [(x.cuda(), y.cuda()) for x, y in loader]",
    "for x, *rest in loader: seen.append(type(x).__name__)",
)
_SETUP = (
    ["device = 'cuda'"],
    ["size = None"],
    ["features = torch.arange(12.0).reshape(6, 2)"],
    ["labels = torch.arange(6)"],
    ["weight = torch.ones((), requires_grad=True)"],
    ["kept_part = torch.ones(2)"],
    ["def as_tensor(x):", "    return torch.full((2,), float(x))"],
    ["def to_device(x):", "    return torch.full((2,), float(x)).to(device)"],
    ["def as_sparse(x):", "    return torch.ones(2).to_sparse()"],
    ["def as_kept(x):", "    return kept_part"],
    ["Pair = collections.namedtuple('Pair', 'a b')"],
    ["def as_pair(x):", "    return Pair(torch.ones(2), 1.0)"],
    ["class Own:", *indented(["def pin_memory(self):", "    seen.append('pinned')", "    return self"])],
    ["def as_own(x):", "    return Own()"],
    ["def collate(rows):", "    return [torch.stack([row[0] for row in rows])]"],
    [
        "class Rows(Dataset):",
        *indented(["def __init__(self, rows):", "    self.rows = rows"]),
        *indented(["def __len__(self):", "    return len(self.rows)"]),
        *indented(["def __getitem__(self, index):", "    return self.rows[index]"]),
    ],
    ["mnist = datasets.MNIST('data', transform=as_tensor)"],
)


def _loader(choices: Choices) -> Lines:
    if choices.chance(3):
        dataset = choices.of(*_DATASETS)
    else:
        dataset = f"TensorDataset({', '.join(choices.of(*_TENSORS) for _ in range(1 + choices.below(2)))})"
    options = dict.fromkeys(choices.some(_OPTIONS, 2))
    given = ", ".join(["dataset" if choices.chance() else dataset, *options])
    lines = [f"dataset = {dataset}"] if given.startswith("dataset,") or given == "dataset" else []
    if choices.chance(10) and not options:
        given += ", 2, True, None, None, 0, None, False"
    made = choices.of("DataLoader", "DataLoader", "torch.utils.data.DataLoader", "tud.DataLoader")
    return [*lines, f"loader = {made}({given})"]


def program(choices: Choices) -> Program:
    """Return a program that loads batches and uses them."""
    head = [
        "import collections",
        "import numpy as np",
        "import torch",
        "import torch.utils.data as tud",
        "from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset",
        "from torchvision import datasets",
    ]
    if choices.chance(10):
        head.append(choices.of("torch.set_default_device('cuda')", "torch.set_default_dtype(torch.float64)"))
    uses = [choices.of(*_USES[:6]), *choices.some(_USES, 2)]
    site = placed(choices, [*_loader(choices), *(line for use in uses for line in use.split("\n"))])
    moved = ["there = torch.ones(1).to('cuda')"]
    return Program(text(head, needed(_SETUP, site), site, moved))


class _Pictures:
    """A dataset as torchvision has them: numbers stand for pictures."""

    def __init__(self, root: str = "", train: bool = True, transform: Any = None, target_transform: Any = None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(index)
        picture, label = index / 2, index % 2
        return (
            self.transform(picture) if self.transform else picture,
            self.target_transform(label) if self.target_transform else label,
        )


@contextmanager
def pinning(program: str) -> Iterator[None]:
    """Play a machine whose loaders pin: a copy into other memory, which only plain tensors of the CPU can have."""
    torchvision, datasets = types.ModuleType("torchvision"), types.ModuleType("torchvision.datasets")
    torchvision.datasets = datasets  # type: ignore[attr-defined]
    datasets.MNIST = datasets.FakeData = _Pictures  # type: ignore[attr-defined]
    pinned: list[torch.Tensor] = []

    def pin(tensor: torch.Tensor, device: object = None) -> torch.Tensor:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise RuntimeError(f"cannot pin '{tensor.type()}': only dense CPU tensors can be pinned")
        if any(tensor is each for each in pinned):
            return tensor
        storage = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        pinned.append(storage.copy_(tensor))
        return pinned[-1]

    with (
        mock.patch.dict(sys.modules, {"torchvision": torchvision, "torchvision.datasets": datasets}),
        mock.patch.object(torch.accelerator, "is_available", return_value=True),
        mock.patch.object(torch.Tensor, "pin_memory", pin),
        mock.patch.object(torch.Tensor, "is_pinned", lambda tensor: any(tensor is each for each in pinned)),
    ):
        yield


def is_the_fix(difference: Difference) -> bool:
    """Whether only the setting of a loader is another one."""
    return difference.what.endswith(".pin_memory is ('bool', False), then ('bool', True)")


search = Search("TL102", program, places=(VALUES, META), played=pinning, is_the_fix=is_the_fix)
