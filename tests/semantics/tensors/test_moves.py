"""Moves between devices, and the fresh tensors that are moved."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import calls, marked, model_of
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Device

HEADER = """
import torch
from torch.autograd import Variable
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
host = torch.device("cpu")
"""


@pytest.mark.parametrize(
    ("code", "place", "device", "dtype"),
    [
        ("x.cuda()", Device.ACCELERATOR, '"cuda"', ""),
        ("x.cuda(1)", Device.ACCELERATOR, 'torch.device("cuda", 1)', ""),
        ("x.cuda(None)", Device.ACCELERATOR, '"cuda"', ""),
        ("x.cuda(device)", Device.ACCELERATOR, "device", ""),
        ("x.cuda(i)", Device.ACCELERATOR, "", ""),
        ("x.cpu()", Device.CPU, '"cpu"', ""),
        ("x.to(device)", Device.EITHER, "device", ""),
        ("x.to(host)", Device.CPU, "host", ""),
        ('x.to("cuda:1")', Device.ACCELERATOR, '"cuda:1"', ""),
        ('x.to(f"cuda:{i}")', Device.ACCELERATOR, 'f"cuda:{i}"', ""),
        ("x.to(0)", Device.ACCELERATOR, "0", ""),
        ("x.to(device, torch.half)", Device.EITHER, "device", "torch.half"),
        ("x.to(dtype=torch.half, device=device)", Device.EITHER, "device", "torch.half"),
        ("x.to(y.device)", Device.EITHER, "y.device", ""),
        ("x.to(gpus[0])", Device.EITHER, "gpus[0]", ""),
        ("x.type(torch.cuda.HalfTensor)", Device.ACCELERATOR, '"cuda"', "torch.float16"),
        ("x.type_as(y)", Device.UNKNOWN, "y.device", "y.dtype"),
    ],
)
def test_move(code: str, place: Device, device: str, dtype: str) -> None:
    model = model_of(HEADER + f"def f(x, y, i, gpus):\n    mark({code})\n")
    (call,) = marked(model)
    assert isinstance(call, cst.Call)
    move = model.move(call)
    assert move is not None
    assert (move.place, move.device, move.dtype) == (place, device, dtype)


@pytest.mark.parametrize(
    "code",
    ["x.to(torch.half)", "x.to(y)", "x.to(*y)", "x.to(other=y)", "x.to(copy=True)", "x.to(torch.ones(1))", "x.type(y)"],
)
def test_no_move(code: str) -> None:
    model = model_of(HEADER + f"def f(x, y):\n    mark({code})\n")
    (call,) = marked(model)
    assert isinstance(call, cst.Call)
    assert model.move(call) is None


def test_name_alone_is_weak_and_use_confirms_it() -> None:
    alone = model_of("def f(x, device):\n    return x.to(device)\n")
    used = model_of("import torch\ndef f(x, device):\n    torch.ones(1, device=device)\n    return x.to(device)\n")
    for model, evidence in ((alone, Evidence.NAMED), (used, Evidence.INFERRED)):
        move = model.move(calls(model, "to")[0])
        assert move is not None
        assert move.evidence is evidence


def test_tensor_type_that_is_chosen_at_run_time() -> None:
    model = model_of(
        HEADER
        + """
        class A:
            def __init__(self, gpu):
                self.kind = torch.cuda.LongTensor if gpu else torch.LongTensor

            def f(self):
                mark(self.kind)

        if device:
            kind = torch.cuda.FloatTensor
        else:
            kind = torch.FloatTensor
        mark(kind)
        mark(torch.cuda.ByteTensor)
        mark(torch.nothing)
        """.replace("\n        ", "\n")
    )
    found = [model.tensor_type(expression) for expression in marked(model)]
    assert [one.place if one else None for one in found] == [Device.EITHER, Device.EITHER, Device.ACCELERATOR, None]


@pytest.mark.parametrize(
    ("code", "methods"),
    [
        ("y = torch.zeros(3).cuda()", set()),
        ("y = torch.zeros(3).view(1, 3).fill_(2).long()[None].T.to(device)", {"view", "fill_", "long"}),
        ("y = Variable(torch.zeros(3)).cuda()", set()),
        ("y = torch.zeros(3).type(torch.long).type_as(x)", {"type"}),
        ("y = torch.zeros(3)\nz = 1\ny = y.cuda()", set()),
        ("y = torch.zeros(3)\ny = Variable(y.unsqueeze(0).to(device))", {"unsqueeze"}),
        ("y = torch.zeros(3); y = y.cuda()", set()),
        ("x.y = torch.zeros(3)\nx.z = 0\nx.y = x.y.cuda()", set()),
        ("y = torch.zeros(3)\nz = y.cuda()", set()),
        ("y = torch.zeros(3)\nz = y.view(1, 3)\nz = z[None].cuda()", {"view"}),
        ("y = torch.zeros(3)\nif x.is_cuda:\n    y = y.cuda()", set()),
    ],
)
def test_creation(code: str, methods: set[str]) -> None:
    body = code.replace("\n", "\n    ")
    model = model_of(HEADER + f"def f(x):\n    {body}\n")
    found = model.creation(calls(model, "zeros")[0])
    assert found is not None
    assert found.move is not None
    assert found.methods == methods


@pytest.mark.parametrize(
    "code",
    [
        "y = torch.zeros(3) + x.cuda()",
        "y = (torch.zeros(3) + x).cuda()",
        "y = torch.zeros(3).scatter_(0, x, 1).cuda()",
        "y = torch.zeros(3)[x].cuda()",
        "y = torch.zeros(3)\nz = y.cuda()\nprint(y)",
        "y = torch.zeros(3)\nz = y.cuda() if x else y",
        "y = torch.zeros(3)\nz = y[None]\nprint(z)\nz = z.cuda()",
        "y = torch.zeros(3)\nif y.is_cuda:\n    y = y.cuda()",
        "y = torch.zeros(3)\nif x.is_cuda:\n    y = y.cuda()\nelse:\n    y = y.half()",
        "y = torch.zeros(3)\nprint(y)\ny = y.cuda()",
        "y = torch.zeros(3)\nif x:\n    y = y.cuda()",
        "y = torch.zeros(3)\ny = y.cuda() + y.sum()",
        "x.y = torch.zeros(3)\nx.reset()\nx.y = x.y.cuda()",
        "y = torch.zeros(3)\ndef g():\n    return y\ny = y.cuda()",
    ],
)
def test_no_creation(code: str) -> None:
    body = code.replace("\n", "\n    ")
    model = model_of(HEADER + f"def f(x):\n    {body}\n")
    assert model.creation(calls(model, "zeros")[0]) is None


def test_default_device_reaches_those_who_are_called() -> None:
    model = model_of(
        HEADER
        + "def main():\n    torch.set_default_device('cuda')\n    helper()\n"
        + "def helper():\n    return torch.zeros(3)\n"
        + "def other():\n    return torch.zeros(3)\n"
    )
    assert [model.on_default_device(call) for call in calls(model, "zeros")] == [True, False]


def test_spelling_follows_the_imports() -> None:
    model = model_of("import torch as th\ndef f(x):\n    mark(x)\n")
    assert model.spelling("torch.device", marked(model)[0]) == "th.device"
    model = model_of("from torch import nn\ndef f(x):\n    mark(x)\n")
    assert model.spelling("torch.device", marked(model)[0]) is None
    model = model_of("import torch\ndef f(torch):\n    mark(torch)\n")
    assert model.spelling("torch.device", marked(model)[0]) is None


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    mark(1)\n    import torch\n",
        "if flag:\n    import torch\nmark(1)\n",
        "if flag: import torch\nmark(1)\n",
        "def f():\n    mark(1)\nf()\nimport torch\n",
        "try:\n    import other\n    import torch\nexcept ImportError:\n    pass\nmark(1)\n",
    ],
)
def test_spelling_waits_for_the_import(code: str) -> None:
    model = model_of(f"from pieces import mark\n{code}")
    assert model.spelling("torch.device", marked(model)[0]) is None


@pytest.mark.parametrize(
    "code",
    [
        "if flag:\n    import torch\n    mark(1)\n",
        "with context:\n    import torch\n    def f():\n        return [mark(1)]\n",
        "def f():\n    import torch; mark(1)\n",
        "if flag:\n    import torch\ntorch.marked(mark(1)).there\n",
    ],
)
def test_spelling_takes_an_import_that_has_run(code: str) -> None:
    model = model_of(f"from pieces import mark\n{code}")
    place = [*calls(model, "marked"), *marked(model)][0]
    assert model.spelling("torch.device", place) == "torch.device"
