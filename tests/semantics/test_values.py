"""Abstract values: what reaches a name, on which device, with which graph."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.support import marked, model_of
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.values import Device, Graph, Kind, Origin

KINDS = {
    "factory": ("mark(torch.zeros(3))", Kind.TENSOR),
    "arithmetic": ("mark(torch.zeros(3) * 2 + 1)", Kind.TENSOR),
    "comparison": ("mark(torch.zeros(3) > 1)", Kind.TENSOR),
    "identity test": ("mark(torch.zeros(3) is None)", Kind.NUMBER),
    "shape": ("mark(torch.zeros(3).shape[0])", Kind.NUMBER),
    "size": ("mark(torch.zeros(3).size(0))", Kind.NUMBER),
    "item": ("mark(torch.zeros(1).item())", Kind.NUMBER),
    "item of a loss before torch 0.4": ("loss = torch.nn.functional.mse_loss(x, y)\nmark(loss.data[0])", Kind.NUMBER),
    "first of several losses": ("losses = torch.nn.functional.mse_loss(x, y)\nmark(losses[0])", Kind.TENSOR),
    "data of a tensor": ("mark(torch.zeros(3).data[0])", Kind.TENSOR),
    "array": ("mark(np.zeros(3))", Kind.NDARRAY),
    "numpy of a tensor": ("mark(torch.zeros(3).numpy())", Kind.NDARRAY),
    "module": ("mark(torch.nn.Linear(1, 1))", Kind.MODULE),
    "output": ("mark(torch.nn.Linear(1, 1)(x))", Kind.TENSOR),
    "optimizer": ("mark(torch.optim.SGD(p))", Kind.OPTIMIZER),
    "entry of a dictionary": ("d = {'a': torch.nn.Linear(1, 1), 'b': 'x'}\nmark(d['a'])", Kind.MODULE),
    "entry by a keyword": ("d = dict(a=torch.nn.Linear(1, 1), b='x')\nmark(d['a'])", Kind.MODULE),
    "number or tensor of a dictionary": ("d = {'a': torch.zeros(1), 'b': 'x'}\nmark(d['a'])", Kind.UNKNOWN),
    "entry that is put back": ("d = {'a': 1, 'b': 'x'}\nd['a'] = torch.zeros(1)\nmark(d['a'])", Kind.TENSOR),
    "entry beside one that is put back": (
        "d = {'a': torch.nn.Linear(1, 1), 'b': 'x'}\nd['b'] = None\nmark(d['a'])",
        Kind.MODULE,
    ),
    "entry of a dictionary that is updated": (
        "d = {'a': torch.nn.Linear(1, 1), 'b': 'x'}\nd.update(e)\nmark(d['a'])",
        Kind.UNKNOWN,
    ),
    "entry of a dictionary with others": ("d = {'a': 1, **other}\nmark(d['a'])", Kind.NUMBER),
    "default of an argument": ("class A: ...\ndef f(a=None): mark(a or A())", Kind.INSTANCE),
    "default where none is given": ("class A: ...\ndef f(a=None): mark(a if a is not None else A())", Kind.INSTANCE),
    "default by the other branch": ("class A: ...\ndef f(a=None): mark(A() if a is None else a)", Kind.INSTANCE),
    "choice by another argument": ("class A: ...\ndef f(a, b=None): mark(a if b is None else A())", Kind.UNKNOWN),
    "dtype": ("mark(torch.float32)", Kind.DTYPE),
    "string": ("mark('a' + 'b')", Kind.STRING),
    "tuple item": ("a = (torch.zeros(1), 2)\nmark(a[1])", Kind.NUMBER),
    "unpacked": ("a, b = torch.zeros(1), 2\nmark(b)", Kind.NUMBER),
    "topk by name": ("mark(torch.zeros(2, 2).topk(1).indices.t())", Kind.TENSOR),
    "max with a dimension": ("v, i = torch.zeros(2, 2).max(1)\nmark(i)", Kind.TENSOR),
    "range": ("for i in range(3): mark(i)", Kind.NUMBER),
    "item of a map": ("for x in map(lambda t: t.cuda(), [torch.zeros(3)]): mark(x)", Kind.TENSOR),
    "what a map gives its function": ("list(map(lambda t, u: mark(u), [1], [torch.zeros(3)]))", Kind.TENSOR),
    "what another function gives": ("list(other(lambda t: mark(t), [torch.zeros(3)]))", Kind.UNKNOWN),
    "map of a function that is not seen": ("for x in map(f, [torch.zeros(3)]): mark(x)", Kind.UNKNOWN),
    "enumerate": ("for i, x in enumerate(torch.zeros(3)): mark(i)", Kind.NUMBER),
    "distribution": ("mark(torch.distributions.Normal(0.0, 1.0))", Kind.INSTANCE),
    "sample": ("mark(torch.distributions.Normal(0.0, 1.0).sample())", Kind.TENSOR),
    "moment": ("mark(torch.distributions.Normal(0.0, 1.0).mean)", Kind.TENSOR),
    "support of a distribution": ("mark(torch.distributions.Normal(0.0, 1.0).support)", Kind.UNKNOWN),
    "method of no distribution": ("mark(torch.distributions.Normal(0.0, 1.0).expand(s))", Kind.UNKNOWN),
    "rank of a process": ("import torch.distributed as dist\nmark(dist.get_rank())", Kind.NUMBER),
    "memory of a device": ("mark(torch.cuda.memory_allocated())", Kind.NUMBER),
    "setting of a backend": ("mark(torch.backends.cudnn.version())", Kind.NUMBER),
    "call in another process": ("mark(torch.distributed.rpc.rpc_sync(a, f))", Kind.UNKNOWN),
    "collective that records its gradient": ("mark(torch.distributed.nn.all_reduce(y))", Kind.UNKNOWN),
    "unknown call": ("mark(f())", Kind.UNKNOWN),
    "name of a name": ("a = torch.zeros(1)\nb = a\nmark(b)", Kind.TENSOR),
    "list filled later": ("a = []\na.append(torch.zeros(1))\nmark(a[0])", Kind.TENSOR),
    "either branch": ("if c:\n    a = torch.zeros(1)\nelse:\n    a = torch.ones(1)\nmark(a)", Kind.TENSOR),
    "differing branches": ("if c:\n    a = torch.zeros(1)\nelse:\n    a = 1\nmark(a)", Kind.UNKNOWN),
    "rebound": ("a = torch.zeros(1)\na = 1\nmark(a)", Kind.NUMBER),
    "rebound in the loop": ("a = torch.zeros(1)\nfor i in y:\n    mark(a)\n    a = a.view(-1)", Kind.TENSOR),
    "rebound in the loop by another kind": ("a = torch.zeros(1)\nfor i in y:\n    mark(a)\n    a = 1", Kind.UNKNOWN),
    "rebound in a with": ("a = torch.zeros(1)\nwith open(f):\n    a = 1\nmark(a)", Kind.NUMBER),
    "rebound where errors are swallowed": ("a = torch.zeros(1)\nwith suppress(E):\n    a = 1\nmark(a)", Kind.UNKNOWN),
    "rebound on lines with their tests": ("a = torch.zeros(1)\nif c: a = 1\nelse: a = 2\nmark(a)", Kind.NUMBER),
    "rebound in branches of a with": (
        "a = torch.zeros(1)\nwith open(f):\n    if c:\n        a = 1\n    else:\n        a = 2\nmark(a)",
        Kind.NUMBER,
    ),
    "None first": ("a = None\nif c:\n    a = torch.zeros(1)\nmark(a)", Kind.TENSOR),
    "returned": ("def f():\n    return torch.zeros(1)\nmark(f())", Kind.TENSOR),
    "recursion": ("def f(n):\n    return f(n - 1)\nmark(f(3))", Kind.UNKNOWN),
    "passed": ("def f(a):\n    mark(a)\nf(torch.zeros(1))", Kind.TENSOR),
    "annotated": ("def f(a: torch.Tensor):\n    mark(a)", Kind.TENSOR),
    "optional annotation": ("def f(a: torch.Tensor | None = None):\n    mark(a)", Kind.TENSOR),
    "annotation that allows a number": (
        "class M(torch.nn.Module):\n    def forward(self, a: int | torch.Tensor):\n        mark(a)",
        Kind.UNKNOWN,
    ),
    "union that allows a number": (
        "import typing\nclass M(torch.nn.Module):\n    def forward(self, a: typing.Union[torch.Tensor, int]): mark(a)",
        Kind.UNKNOWN,
    ),
    "input without annotation": (
        "class M(torch.nn.Module):\n    def forward(self, a):\n        mark(a)",
        Kind.TENSOR,
    ),
    "batches on a device that is a string": (
        "def f(s, device='cuda'):\n  for a in s:\n    mark(a)\n    a = a.to(device)\n    a.sum().backward()",
        Kind.BATCH,
    ),
    "values of a ModuleDict": (
        "layers = torch.nn.ModuleDict()\nfor name, layer in layers.items():\n    mark(layer)",
        Kind.MODULE,
    ),
    "attribute": (
        "class A:\n    def __init__(self):\n        self.x = torch.zeros(1)\n    def f(self):\n        mark(self.x)",
        Kind.TENSOR,
    ),
    "attribute of an instance": (
        "class A:\n    def __init__(self):\n        self.x = torch.zeros(1)\na = A()\nmark(a.x)",
        Kind.TENSOR,
    ),
    "inherited attribute": (
        "class A:\n    def __init__(self):\n        self.x = torch.zeros(1)\nclass B(A): ...\nmark(B().x)",
        Kind.TENSOR,
    ),
    "buffer": (
        (
            "class M(torch.nn.Module):\n"
            "    def __init__(self): self.register_buffer('x', f())\n"
            "    def g(self): mark(self.x)"
        ),
        Kind.TENSOR,
    ),
    "buffer that is filled later": (
        (
            "class M(torch.nn.Module):\n"
            "    def __init__(self): self.register_buffer('x', None)\n"
            "    def g(self): mark(self.x)"
        ),
        Kind.UNKNOWN,
    ),
    "given to a function that takes tensors": ("for a in b:\n    mark(a)\n    c = torch.ones_like(a)", Kind.TENSOR),
    "given in one branch": ("for a in b:\n    mark(a)\n    if d:\n        c = torch.ones_like(a)", Kind.UNKNOWN),
    "given in one case": ("for a in b:\n    mark(a)\n    c = torch.ones_like(a) if d else a", Kind.UNKNOWN),
    "given before it is something else": ("def f(a):\n    c = torch.ones_like(a)\n    a = 1\n    mark(a)", Kind.NUMBER),
    "parameter that is given": ("def f(a):\n    c = torch.ones_like(a)\n    mark(a)", Kind.TENSOR),
    "name of a type": ("mark(torch.zeros(3).type())", Kind.STRING),
    "batch": ("for x, y in torch.utils.data.DataLoader(d): mark(x)", Kind.TENSOR),
    "dimensions of a batch": ("for x in torch.utils.data.DataLoader(d): mark(x.ndim)", Kind.NUMBER),
    "shape of a batch": ("for x in torch.utils.data.DataLoader(d): mark(x.shape)", Kind.SEQUENCE),
    "dtype of a batch": ("for x in torch.utils.data.DataLoader(d): mark(x.dtype)", Kind.DTYPE),
    "size of a batch of graphs": ("for x in torch.utils.data.DataLoader(d): mark(x.num_graphs)", Kind.UNKNOWN),
    "field of a batch": ("for x in torch.utils.data.DataLoader(d): mark(x.labels)", Kind.TENSOR),
    "batch through progress bar": (
        "from tqdm import tqdm\nfor i, (x, y) in enumerate(tqdm(torch.utils.data.DataLoader(d))): mark(y)",
        Kind.TENSOR,
    ),
    "next of an iterator": ("it = iter(torch.utils.data.DataLoader(d))\nx, y = next(it)\nmark(x)", Kind.TENSOR),
}
DEVICES = {
    "factory": ("mark(torch.zeros(3))", Device.CPU),
    "moved": ("mark(torch.zeros(3).cuda())", Device.ACCELERATOR),
    "moved by string": ("mark(torch.zeros(3).to('cuda:1'))", Device.ACCELERATOR),
    "moved to a device": ("d = torch.device('cuda')\nmark(torch.zeros(3).to(d))", Device.ACCELERATOR),
    "chosen at run time": (
        "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nmark(torch.zeros(3).to(d))",
        Device.EITHER,
    ),
    "given": ("mark(torch.zeros(3, device='cuda'))", Device.ACCELERATOR),
    "back again": ("mark(torch.zeros(3).cuda().cpu())", Device.CPU),
    "sample": ("mark(torch.distributions.Normal(torch.zeros(3).cuda(), 1.0).sample())", Device.ACCELERATOR),
    "sample of a nested distribution": (
        (
            "from torch.distributions import Independent, Normal\n"
            "mark(Independent(Normal(torch.zeros(3), 1.0), 1).entropy())"
        ),
        Device.CPU,
    ),
    "cast only": ("mark(torch.zeros(3).to(torch.float16))", Device.CPU),
    "like another": ("a = torch.zeros(3).cuda()\nmark(torch.ones(3).type_as(a))", Device.ACCELERATOR),
    "arithmetic": ("a = torch.zeros(3).cuda()\nmark(a * 2)", Device.ACCELERATOR),
    "batch": ("for x, y in torch.utils.data.DataLoader(d): mark(x)", Device.CPU),
    "prepared": (
        (
            "from accelerate import Accelerator\naccelerator = Accelerator()\n"
            "loader = accelerator.prepare(torch.utils.data.DataLoader(d))\nfor x in loader: mark(x)"
        ),
        Device.ACCELERATOR,
    ),
}
GRAPHS = {
    "output": ("mark(torch.nn.Linear(1, 1)(x))", Graph.ATTACHED),
    "detached": ("mark(torch.nn.Linear(1, 1)(x).detach())", Graph.DETACHED),
    "data": ("mark(torch.nn.Linear(1, 1)(x).data)", Graph.DETACHED),
    "without gradients": ("with torch.no_grad():\n    mark(torch.nn.Linear(1, 1)(x))", Graph.DETACHED),
    "gradients on again": (
        "with torch.no_grad():\n    with torch.enable_grad():\n        mark(torch.nn.Linear(1, 1)(x))",
        Graph.ATTACHED,
    ),
    "decorated": ("@torch.no_grad()\ndef f():\n    mark(torch.nn.Linear(1, 1)(x))", Graph.DETACHED),
    "every caller without gradients": (
        "def f():\n    mark(torch.nn.Linear(1, 1)(x))\nwith torch.inference_mode():\n    f()",
        Graph.DETACHED,
    ),
    "some caller with gradients": (
        "def f():\n    mark(torch.nn.Linear(1, 1)(x))\nwith torch.no_grad():\n    f()\nf()",
        Graph.ATTACHED,
    ),
    "switched off for the file": ("torch.set_grad_enabled(False)\nmark(torch.nn.Linear(1, 1)(x))", Graph.DETACHED),
    "indices": ("mark(torch.nn.Linear(1, 1)(x).argmax(1))", Graph.DETACHED),
}
HEADER = "import torch\nimport numpy as np\n"


@pytest.mark.parametrize("case", KINDS)
def test_kind(case: str) -> None:
    program, expected = KINDS[case]
    model = model_of(HEADER + program)
    assert [model.value(e).kind for e in marked(model)] == [expected]


@pytest.mark.parametrize("case", DEVICES)
def test_device(case: str) -> None:
    program, expected = DEVICES[case]
    model = model_of(HEADER + program)
    assert [model.value(e).device for e in marked(model)] == [expected]


@pytest.mark.parametrize("case", GRAPHS)
def test_graph(case: str) -> None:
    program, expected = GRAPHS[case]
    model = model_of(HEADER + program)
    assert [model.value(e).graph for e in marked(model)] == [expected]


def test_evidence_is_that_of_the_weakest_premise() -> None:
    model = model_of(
        HEADER + "def f(loss):\n    mark(loss)\nx = torch.zeros(1)\nmark(x)\ndef g(x: torch.Tensor):\n    mark(x)"
    )
    assert [model.value(e).evidence for e in marked(model)] == [Evidence.NAMED, Evidence.PROVEN, Evidence.INFERRED]


@pytest.mark.parametrize("use", ["train()", "parameters()", "other()"])
def test_use_bears_out_the_name_of_what_an_object_keeps(use: str) -> None:
    model = model_of(
        f"class Trainer:\n    def __init__(self, model):\n        self.model = model\n        self.model.{use}\n"
        "    def run(self):\n        mark(self.model)"
    )
    value = model.value(marked(model)[0])
    expected = Evidence.NAMED if use == "other()" else Evidence.INFERRED
    assert (value.kind, value.evidence) == (Kind.MODULE, expected)


@pytest.mark.parametrize("use", ["eval()", "parameters()", "other()"])
def test_use_bears_out_the_name_of_what_a_loop_binds(use: str) -> None:
    model = model_of(f"def f(models, x):\n    for model in models:\n        model.{use}\n        mark(model)")
    value = model.value(marked(model)[0])
    expected = Evidence.NAMED if use == "other()" else Evidence.INFERRED
    assert (value.kind, value.evidence) == (Kind.MODULE, expected)


def test_a_loss_is_known_by_its_backward_pass() -> None:
    model = model_of("def f(x):\n    value = compute(x)\n    value.backward()\n    mark(value)")
    value = model.value(marked(model)[0])
    assert (value.kind, value.origin, value.evidence) == (Kind.TENSOR, Origin.LOSS, Evidence.INFERRED)


def test_the_budget_makes_deep_programs_unknown_and_not_slow() -> None:
    lines = ["import torch", "a0 = torch.zeros(1)", *(f"a{i + 1} = a{i} + a{i}" for i in range(300)), "mark(a300)"]
    model = model_of("\n".join(lines))
    assert model.value(marked(model)[0]).kind in (Kind.UNKNOWN, Kind.TENSOR)


def test_a_batch_is_a_tensor_however_many_methods_are_called_on_it() -> None:
    model = model_of(
        """
        import torch

        def train(model, loader, optimizer):
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                mask = y > 0
                places = mask.nonzero()
                labels = y.unique()
                spread = x.repeat_interleave(y)
                loss = model(x)[mask].mean() + show(places, labels, spread)
                loss.backward()
                optimizer.step()
        """
    )
    names = [name for name in model.nodes(cst.Name) if name.value in ("x", "y")]
    assert all(model.value(name).is_tensor for name in names)


@pytest.mark.parametrize(
    ("annotation", "is_tensor"),
    [
        ("tuple[int, int] | torch.Tensor", True),
        ("float | torch.Tensor | None", True),
        ("Union[List[int], torch.Tensor]", True),
        ("Size | torch.Tensor", False),
        ("tuple[int, int]", False),
        ("torch.device", False),
    ],
)
@pytest.mark.parametrize("variable", ["size", "self.size"])
def test_what_only_the_tensor_of_several_types_can_do(annotation: str, is_tensor: bool, variable: str) -> None:
    model = model_of(f"""
        from typing import List, Union

        import torch

        class Crop:
            def __init__(self, size: {annotation}):
                self.size = size
                mark({variable}.to("cuda"))
    """)
    assert model.value(marked(model)[0]).is_tensor is is_tensor
