"""Qualified names: every way to reach an object, and every way to hide it."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of

RESOLVED = {
    "plain import": ("import torch\nmark(torch.zeros)", "torch.zeros"),
    "alias": ("import torch as t\nmark(t.zeros)", "torch.zeros"),
    "from import": ("from torch import zeros\nmark(zeros)", "torch.zeros"),
    "from import alias": ("from torch import zeros as z\nmark(z)", "torch.zeros"),
    "submodule import binds the root": (
        "import torch.utils.data\nmark(torch.utils.data.DataLoader)",
        "torch.utils.data.DataLoader",
    ),
    "submodule alias": ("import torch.utils.data as d\nmark(d.DataLoader)", "torch.utils.data.DataLoader"),
    "package from package": ("from torch.utils import data\nmark(data.DataLoader)", "torch.utils.data.DataLoader"),
    "module where it is defined": (
        "from torch.utils.data.dataloader import DataLoader\nmark(DataLoader)",
        "torch.utils.data.DataLoader",
    ),
    "nn module where it is defined": ("from torch.nn.modules.conv import Conv2d\nmark(Conv2d)", "torch.nn.Conv2d"),
    "anomaly where it is defined": (
        "from torch.autograd.anomaly_mode import set_detect_anomaly\nmark(set_detect_anomaly)",
        "torch.autograd.set_detect_anomaly",
    ),
    "name to name": ("import torch\nmake = torch.zeros\nmark(make)", "torch.zeros"),
    "two steps": ("from torch import nn\nn2 = nn\nlayer = n2.Linear\nmark(layer)", "torch.nn.Linear"),
    "star import": ("from torch.utils.data import *\nmark(DataLoader)", "torch.utils.data.DataLoader"),
    "star import of something else": ("from torch.nn import *\nmark(DataLoader)", None),
    "star import of one's own": ("from common import *\nmark(nn.Linear)", "torch.nn.Linear"),
    "star import of one's own, by no convention": ("from .common import *\nmark(DataLoader)", None),
    "import in a function": ("def f():\n    import torch\n    mark(torch.ones)", "torch.ones"),
    "import seen from a function": ("import torch\ndef f():\n    mark(torch.ones)", "torch.ones"),
    "both branches agree": (
        (
            "try:\n    from torch.utils.data import Dataset\nexcept ImportError:\n"
            "    from torch.utils.data.dataset import Dataset\nmark(Dataset)"
        ),
        "torch.utils.data.Dataset",
    ),
    "fallback to None": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nmark(torch.zeros)",
        "torch.zeros",
    ),
    "generic class": ("from torch.utils.data import DataLoader\nmark(DataLoader[int])", "torch.utils.data.DataLoader"),
    "built-in": ("mark(float)", "builtins.float"),
    "lightning by its old name": ("import pytorch_lightning as pl\nmark(pl.Trainer)", "lightning.pytorch.Trainer"),
    "rebound by a loop further down": (
        "from torch.utils import data\nmark(data.DataLoader)\nfor data in (): ...",
        "torch.utils.data.DataLoader",
    ),
    "a switch that is set keeps its name": (
        "import torch\ntorch.backends.cudnn.benchmark = False\nmark(torch.backends.cudnn.benchmark)",
        "torch.backends.cudnn.benchmark",
    ),
}
HIDDEN = {
    "rebound module": "import torch\ntorch = object()\nmark(torch.zeros)",
    "parameter": "import torch\ndef f(torch):\n    mark(torch.zeros)",
    "loop target": "import torch\nfor torch in ():\n    mark(torch.zeros)",
    "target of a loop around": "import torch\nfor i in ():\n    mark(torch.zeros)\n    for torch in (): ...",
    "rebound before a function runs": "import torch\ndef f():\n    mark(torch.zeros)\nfor torch in (): ...",
    "with target": "import torch\nwith open('x') as torch:\n    mark(torch.zeros)",
    "walrus": "import torch\nif (torch := 1):\n    mark(torch.zeros)",
    "comprehension target": "import torch\n[mark(torch.zeros) for torch in range(3)]",
    "lambda parameter": "import torch\nf = lambda torch: mark(torch.zeros)",
    "local class": "from torch.utils.data import DataLoader\nclass DataLoader: ...\nmark(DataLoader)",
    "local function": "from torch import zeros\ndef zeros(): ...\nmark(zeros)",
    "another import in a branch": "import torch\nif x:\n    import numpy as torch\nmark(torch.zeros)",
    "rebound attribute": "import torch\ntorch.zeros = mine\nmark(torch.zeros)",
    "read through a call": "import torch\nmark(torch.device('cpu').type)",
    "read through a subscript": "import torch\nmark(modules['torch'].zeros)",
    "global statement": "import torch\ndef f():\n    global torch\n    torch = 1\nmark(torch.zeros)",
    "relative import": "from .torch import zeros\nmark(zeros)",
    "except target": "import torch\ntry: ...\nexcept E as torch:\n    mark(torch.zeros)",
    "own module with the same tail": "from mylib.torch.utils.data import DataLoader\nmark(torch.utils.data.DataLoader)",
    "shadowed built-in": "def float(x): ...\nmark(float)",
}


@pytest.mark.parametrize("case", RESOLVED)
def test_resolves(case: str) -> None:
    program, expected = RESOLVED[case]
    model = model_of(program)
    assert [model.qualified_name(e) for e in marked(model)] == [expected]


@pytest.mark.parametrize("case", HIDDEN)
def test_stays_silent(case: str) -> None:
    model = model_of(HIDDEN[case])
    found = [model.qualified_name(e) for e in marked(model)]
    assert found
    assert not any(name is not None and name.startswith(("torch.", "builtins.")) for name in found), found


@pytest.mark.parametrize(
    "program",
    [
        "import torch\n@mark(torch.zeros)\ndef f(torch): ...",
        "import torch\ndef f(torch=mark(torch.zeros)): ...",
        "import torch\ndef f(torch: mark(torch.zeros)): ...",
        "import torch\nf = lambda torch=mark(torch.zeros): 1",
        "import torch\n[x for torch in mark(torch.zeros)]",
        "import torch\nclass A(mark(torch.zeros)):\n    torch = 1",
        "import torch\nclass A:\n    torch = 1\n    def f(self):\n        mark(torch.zeros)",
    ],
)
def test_looks_up_where_python_does(program: str) -> None:
    """Decorators, defaults, annotations, base classes and the first iterable belong outside."""
    model = model_of(program)
    assert [model.qualified_name(e) for e in marked(model)] == ["torch.zeros"]


def test_partial_gives_name_and_arguments() -> None:
    model = model_of(
        """
        from functools import partial
        from torch.utils.data import DataLoader
        make = partial(DataLoader, num_workers=4)
        loader = make(data, 32)
        """
    )
    call = next(c for c in model.nodes(cst.Call) if model.code(c.func) == "make")
    arguments = model.arguments(call)
    assert model.callee(call) == "torch.utils.data.DataLoader"
    assert model.code(arguments.named["num_workers"]) == "4"
    assert model.code(arguments.named["batch_size"]) == "32"


def test_stars_leave_parameters_open() -> None:
    model = model_of(
        "from torch.utils.data import DataLoader\nDataLoader(data, **options)\nDataLoader(*args)\nDataLoader(data)"
    )
    opened = [model.arguments(c).absent("num_workers") for c in model.nodes(cst.Call)]
    assert opened == [False, False, True]
