"""Legacy CUDA types called with everything that they take; types of the host that move what they make play them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search

_TYPES = ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool", "BFloat16")
_DATA = (
    "[1, 2]",
    "[0.5, 2.5]",
    "[[1, 2], [3, 4]]",
    "[]",
    "[[]]",
    "()",
    "(1, 2)",
    "(2, 3)",
    "[True, False]",
    "[300, -1]",
    "[1e30]",
    "[-1]",
    "[float('nan')]",
    "[n, n + 1]",
    "[0] * n",
    "[0.5] * 3",
    "[k * 2 for k in range(n)]",
    "[scalar]",
    "[scalar, 1]",
    "[np.float32(0.1)]",
    "[np.ones(2), np.ones(2)]",
    "[x for x in data]",
    "data",
    "np.ones(3)",
    "[1j]",
    "[None]",
    "[2 ** 40]",
    "[1.5, True]",
    "range(3)",
    "other.size()",
    "torch.Size([2, 3])",
    "[0x10, 1_0]",
    "[-0.0]",
    "[data, data]",
    "[*data, 1]",
)
_SIZES = (
    "2, 3",
    "n",
    "n, 2",
    "0",
    "0, 2",
    "3",
    "len(data)",
    "other.size(0)",
    "other.size(0), 3",
    "other.shape[0]",
    "rows, columns",
    "*shape",
    "n * 2",
    "n // 2, 1",
    "other.dim()",
    "box.dim()",
    "box.size(0)",
    "box.shape[0]",
    "box.numel()",
    "int(n)",
    "True",
    "np.int64(2)",
    "scalar",
    "k",
    "1, 1, 1",
    "-1",
    "half",
)
_FILLS = (".zero_()", ".fill_(1)", ".fill_(2.5)", ".fill_(n)", ".fill_(True)", ".zero_().view(-1)")
_AFTER = (
    "x = x + 1",
    "x.zero_()",
    "y = x.cpu()",
    "y = x.float()",
    "x.requires_grad_()",
    "x.resize_(2).zero_()",
    "y = x.view(-1)",
    "y = [x, x]",
    "print(x.dtype, x.shape, x.stride())",
    "y = x.is_contiguous()",
    "y = torch.nn.Parameter(x)",
    "x.detach_()",
    "y = x.type()",
    "data.append(1)",
)
_SETUP = (
    ["n = 3"],
    ["data = [1, 2]"],
    ["shape = (2, 3)"],
    ["other = torch.ones(2, 3)"],
    ["rows, columns = other.shape"],
    ["scalar = torch.tensor(2)"],
    ["half = 0.5"],
    ["k = 2"],
    [
        "class Box:",
        *indented(["shape = ([1.5], 2)", "def dim(self): return [1.0, 2.0]"]),
        *indented(["def size(self, axis): return [3.0]", "def numel(self): return (4, 5)"]),
    ],
    ["box = Box()"],
)


def _site(choices: Choices) -> Lines:
    kind = choices.of(*_TYPES) + "Tensor"
    spelling = choices.of("torch.cuda", "torch.cuda", "cuda")
    name, lines = f"{spelling}.{kind}", Lines()
    if choices.chance(4):
        lines, name = [f"Tensor = {name}"], "Tensor"
    elif choices.chance(6):
        lines, name = [f"from torch.cuda import {kind}"], kind
    if choices.chance(8):
        lines.append(choices.of("n = 2", "n = [1.0]", "n += 0.5", "k = [5.0]", "for n in (1, 2): pass"))
    if choices.chance():
        made = f"{name}({choices.of(*_DATA)})"
    else:
        made = f"{name}({choices.of(*_SIZES)}){choices.of(*_FILLS)}"
    if choices.chance(6):
        return [*lines, f"pair = [{made} for k in range(2)]", "x = pair[0]"]
    return [*lines, f"x = {made}{choices.of('', '', '', '.view(-1)', '.t()', '.long()', '[0]')}"]


def program(choices: Choices) -> Program:
    """Return a program that makes a tensor by a legacy type."""
    head = ["import numpy as np", "import torch", "from torch import cuda"]
    if choices.chance(10):
        head.append(choices.of("torch.set_default_dtype(torch.float64)", "torch.set_default_device('cuda:1')"))
    site = placed(choices, [*_site(choices), *choices.some(_AFTER, 3)])
    return Program(text(head, needed(_SETUP, site), site))


def _played(name: str) -> Any:
    of_the_host = getattr(torch, name)

    def make(*given: Any, **named: Any) -> torch.Tensor:
        with torch.device("cpu"):
            return of_the_host(*given, **named).to("cuda")

    return make


@contextmanager
def legacy_types(program: str) -> Iterator[None]:
    """Let types of the host play the legacy CUDA types."""
    with ExitStack() as stack:
        for kind in _TYPES:
            stack.enter_context(mock.patch.object(torch.cuda, f"{kind}Tensor", _played(f"{kind}Tensor")))
        yield


search = Search("TL214", program, played=legacy_types)
