"""The mode and the history in every spelling, on a machine that plays a GPU, and whatever can see that they are on."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_MODES = {"default": 0, "warn": 1, "error": 2}
_SET = ("torch.cuda.set_sync_debug_mode", "cuda.set_sync_debug_mode", "set_sync_debug_mode")
_ON = ('"warn"', "1", 'debug_mode="warn"', "debug_mode=1", '"error"', "2")
_HISTORY = (
    "torch.cuda.memory._record_memory_history()",
    'torch.cuda.memory._record_memory_history("all")',
    "torch.cuda.memory._record_memory_history(enabled='state')",
)
_PLAIN = (
    "x = torch.arange(4) * 2",
    "y = torch.rand(3)",
    "print(n)",
    "n += 1",
    "seen.append((torch.ones(3) * 2).sum().item())",
    "total = float(torch.ones(2).sum())",
    "with torch.no_grad(): z = torch.ones(n)",
    "class Late: value = n",
    "text = '''one\\n    two'''",
)
_READS = (
    "seen.append(torch.cuda.get_sync_debug_mode())",
    'seen.append(getattr(torch.cuda, "get_sync_debug_mode")())',
    "seen.append(torch.cuda.is_initialized())",
    "seen.append(get_sync_debug_mode())",
    "with warnings.catch_warnings(record=True) as caught: seen.append(torch.ones(1).item()); seen.append(len(caught))",
    "with w.catch_warnings(record=True) as caught: seen.append(torch.ones(1).item()); seen.append(len(caught))",
    "with catch_warnings(record=True) as caught: seen.append(torch.ones(1).item()); seen.append(len(caught))",
    "try: seen.append(torch.ones(1).item())\nexcept RuntimeError: seen.append('it waits')",
    "with suppress(RuntimeError): seen.append(torch.ones(1).item())",
    "seen.append(torch.cuda.memory._snapshot())",
    'seen.append(torch.cuda.memory._dump_snapshot("s"))',
    "logging.captureWarnings(True); seen.append(torch.ones(1).item())",
    'torch.cuda.set_sync_debug_mode("default")',
    "torch.cuda.set_sync_debug_mode(0)",
)
_IMPORTS = (
    "from torch.cuda import get_sync_debug_mode",
    "import warnings",
    "import warnings as w",
    "import logging",
    "from warnings import catch_warnings",
    "from contextlib import suppress",
)
_SETUP = (["n = 3"],)


def _statement(choices: Choices) -> Lines:
    call = f"{choices.of(*_SET)}({choices.of(*_ON)})" if choices.chance() else choices.of(*_HISTORY)
    return [choices.of(call, f"{call}; n = 4", f"state = {call}", f"{call}  # what waits?")]


def program(choices: Choices) -> Program:
    """Return a program that switches an aid on."""
    head = [
        *("import torch", "from torch import cuda"),
        "from torch.cuda import set_sync_debug_mode",
    ]
    after = choices.some(_READS if choices.chance(4) else _PLAIN, 3)
    lines = [line for statement in after for line in statement.split("\n")]
    site = placed(choices, [*choices.some(_PLAIN, 1), *_statement(choices)])
    if choices.chance(6):
        site = ["def prepare():", *indented(_statement(choices)), "prepare()", *site]
    words = set(re.findall(r"\w+", text(site, lines)))
    imports = [line for line in _IMPORTS if line.split()[-1] in words]
    return Program(text(head, imports, needed(_SETUP, [*site, *lines]), site, lines))


@contextmanager
def a_gpu(program: str) -> Iterator[None]:
    """Play what the two functions do: items are read off a GPU, which waits, and snapshots show whether it records."""
    state = {"mode": 0, "history": "", "started": False}
    read = torch.Tensor.item

    def set_mode(debug_mode: int | str) -> None:
        state.update(mode=_MODES[debug_mode] if isinstance(debug_mode, str) else debug_mode, started=True)

    def record(enabled: str | None = "all", *_: object) -> None:
        state["history"] = enabled or ""

    def item(tensor: torch.Tensor) -> object:
        if state["mode"] == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        if state["mode"] == 1:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=2)
        return read(tensor)

    def snapshot(*_: object) -> object:
        return state["history"]

    def mode() -> object:
        return state["mode"]

    def started() -> object:
        return state["started"]

    with (
        mock.patch("torch.cuda.set_sync_debug_mode", set_mode),
        mock.patch("torch.cuda.get_sync_debug_mode", mode),
        mock.patch("torch.cuda.is_initialized", started),
        mock.patch("torch.cuda.memory._record_memory_history", record),
        mock.patch("torch.cuda.memory._snapshot", snapshot),
        mock.patch("torch.cuda.memory._dump_snapshot", snapshot),
        mock.patch("torch.Tensor.item", item),
    ):
        yield


search = Search("TL608", program, places=(VALUES,), played=a_gpu)
