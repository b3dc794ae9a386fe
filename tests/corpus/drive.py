"""``python drive.py SCRIPT RECORD ITEMS [WORDS]...``: run a script on synthetic data and write down what it computes.

Torchvision, matplotlib and TensorBoard are played by stand-ins, so that nothing is downloaded or drawn, and so is the
clock, which counts how often it is read; ``ITEMS`` is the size of every data set.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import runpy
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

CLASSES = 10


class Images(torch.utils.data.Dataset):
    """Noise whose brightness tells the class, the same on every run."""

    items = 0
    shape = (1, 28, 28)
    classes = tuple(map(str, range(CLASSES)))

    def __init__(self, root: str = "", train: bool = True, **ignored: object) -> None:
        generator = torch.Generator().manual_seed(1 if train else 2)
        self.targets = torch.randint(CLASSES, (self.items,), generator=generator)
        noise = torch.rand((self.items, *self.shape), generator=generator)
        self.data = (noise + self.targets.view(-1, 1, 1, 1) / CLASSES) / 2

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.data[index], int(self.targets[index])


class ColourImages(Images):
    """The same in colour."""

    shape = (3, 32, 32)


class Anything(types.ModuleType):
    """A module of which every attribute can be called, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing


class Writer:
    """Writes nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return nothing


def nothing(*args: Any, **kwargs: Any) -> Any:
    """Return the first argument."""
    return args[0] if args else None


def install_stand_ins() -> None:
    """Make the modules that the scripts import importable."""
    vision, datasets, plot = Anything("torchvision"), Anything("torchvision.datasets"), Anything("matplotlib.pyplot")
    datasets.MNIST = datasets.FashionMNIST = Images  # type: ignore[attr-defined]
    datasets.CIFAR10 = ColourImages  # type: ignore[attr-defined]
    modules = {"torchvision": vision, "torchvision.datasets": datasets, "matplotlib": Anything("matplotlib")}
    modules |= {f"torchvision.{name}": Anything(f"torchvision.{name}") for name in ("transforms", "utils")}
    modules["torchvision.utils"].make_grid = lambda images, *args, **kwargs: images[0]  # type: ignore[attr-defined]
    board = Anything("torch.utils.tensorboard")
    board.SummaryWriter = Writer  # type: ignore[attr-defined]
    for name, module in {**modules, "matplotlib.pyplot": plot, board.__name__: board}.items():
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def record_modules() -> list[torch.nn.Module]:
    """Return the list that every module will be in, in the order of their making."""
    made: list[torch.nn.Module] = []
    original = torch.nn.Module.__init__

    def init(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made.append(self)

    torch.nn.Module.__init__ = init  # type: ignore[method-assign]
    return made


def record_losses() -> list[str]:
    """Return the list that every loss will be in when its backward pass begins, in hexadecimal: every bit counts."""
    losses: list[str] = []
    original = torch.Tensor.backward

    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        losses.append(float(self.detach()).hex())
        return original(self, *args, **kwargs)

    torch.Tensor.backward = backward  # type: ignore[method-assign]
    return losses


def record_lines(script: str) -> set[int]:
    """Return the set of the lines of the script that have run."""
    lines: set[int] = set()

    def trace(frame: types.FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != script:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    return lines


def digest(modules: list[torch.nn.Module]) -> str:
    """Return a digest of every bit of the parameters and buffers."""
    found = hashlib.sha256()
    for module in modules:
        tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, tensor in tensors:
            plain = tensor.detach().cpu().contiguous()
            found.update(f"{name} {plain.dtype} {tuple(plain.shape)}".encode())
            found.update(plain.view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def main(script: str, record: str, items: str, *words: str) -> None:
    """Run the script and write the record."""
    Images.items = int(items)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    install_stand_ins()
    ticks = itertools.count(1)
    time.time = time.perf_counter = lambda: float(next(ticks))
    modules, losses = record_modules(), record_losses()
    sys.argv = [script, *words]
    lines = record_lines(script)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.settrace(None)
    seen = {"losses": losses, "weights": digest(modules), "tensors": len(modules), "lines": sorted(lines)}
    Path(record).write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
