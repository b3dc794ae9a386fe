"""Fresh arrays of every kind, with arguments that share, reorder or reuse memory, and tensors that are then changed."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_SHAPES = ("3", "(2, 3)", "(0, 3)", "(3, 0)", "(2, 1, 3)", "n", "(n, 2)", "()", "shape", "[2, 2]", "(2, 0, 3)")
_DTYPES = (
    "",
    "",
    "",
    "",
    "",
    "dtype=np.float32",
    "dtype=int",
    "dtype='uint8'",
    "dtype=bool",
    "dtype=np.uint16",
    "dtype='>f4'",
)
_ORDERS = ("", "", "", "", "", "", "order='C'", "order='F'", "order=order")
_ARRAYS = (
    "np.arange(n)",
    "np.arange(6.0)",
    "np.arange(0, 1, 0.3)",
    "np.linspace(0, 1, 5)",
    "np.linspace(0, 1, n, endpoint=False)",
    "np.linspace(0, 1, 3, retstep=True)[0]",
    "np.logspace(0, 1, 3)",
    "np.identity(n)",
    "np.array([1.0, 2.0, 3.0])",
    "np.array([[1, 2], [3, 4]])",
    "np.array([len(row) for row in rows])",
    "np.array(rows)",
    "np.array([base, base])",
    "np.array([wide.T, wide.T])",
    "np.array([wide.T])",
    "np.array((base, base), copy=True)",
    "np.array([base, base], ndmin=3)",
    "np.array([True, False])",
    "np.array([x for x in base])",
    "np.array([1, 2.5], dtype=np.float16)",
    "np.array([])",
    "np.array([[]])",
    "np.array([1j, 2])",
    "np.random.rand(2, 3)",
    "np.random.rand(n)",
    "np.random.randn(3)",
    "np.random.rand(65, 33)",
    "np.random.randn(33, 65)",
    "np.random.rand(10_001)",
    "np.random.normal(0, 1, size=(2, n))",
    "np.random.normal(size=3)",
    "np.random.uniform(0, 1, (2, 2))",
    "np.random.normal(wide.T, 1, size=(3, 2))",
    "np.random.randint(0, 5, size=4)",
    "np.random.randint(0, 5, (2, 2))",
    "np.random.choice(5, size=3)",
    "np.random.choice(base, size=(2, 2))",
    "np.random.permutation(n)",
    "np.random.permutation(base)",
    "np.random.permutation(wide.T)",
    "np.random.standard_normal((2, 3))",
    "rng.normal(size=(2, n))",
    "rng.integers(0, 5, size=3)",
    "rng.random(size=3)",
    "rng.random(3)",
    "rng.random(size=3, out=base)",
    "rng.standard_normal(size=3, out=base)",
    "rng.standard_normal(3, np.float64, base)",
    "rng.standard_normal(out=base)",
    "rng.permutation(wide.T)",
    "rng.choice(wide.T, size=3)",
    "rng.choice(wide, size=3, axis=1)",
    "rng.permutation(wide, axis=1)",
    "np.loadtxt(io.StringIO('1 2\\n3 4\\n5 6'))",
    "np.loadtxt(io.StringIO('1 2\\n3 4\\n5 6'), unpack=True)",
    "np.genfromtxt(io.StringIO('1 2\\n3 4\\n5 6'), unpack=True)",
    "np.genfromtxt(io.StringIO('1 2\\n3 4'))",
    "wide.flatten()",
    "wide.T.flatten('F')",
    "base.copy()",
    "wide.T.copy()",
    "base.astype(np.float32)",
    "base.astype(np.float64, copy=False)",
    "base",
    "base[1:]",
    "base[[0, 1]]",
    "base[base > 0]",
    "base + 1",
    "wide.T * 2",
    "-wide.T",
    "np.asarray(rows)",
    "np.concatenate([base, base])",
    "np.stack([base, base], axis=1)",
    "np.tile(base, 2)",
    "np.eye(3)[[0, 2]]",
    "np.zeros((2, 3)).T",
    "np.zeros((3, 3))[:, 0]",
    "np.ones(3) if n else np.zeros(3)",
    "np.matrix([[1, 2]])",
    "np.ma.array([1, 2])",
    "np.full(3, base[0])",
    "np.full((2, 3), base)",
    "np.fromfile(os.devnull)",
    "kept(np.zeros(3))",
    "(held := np.zeros(3))",
)
_FRESH = tuple(array for array in _ARRAYS if array.startswith(("np.random", "np.array([", "np.a", "np.l", "rng")))
_AFTER = (
    "x += 1",
    "x.zero_()",
    "x = x.float()",
    "x = x.double()",
    "y = x.numpy()",
    "base += 1",
    "base[:] = 7",
    "wide += 1",
    "kept.last += 1",
    "y = x @ x",
    "y = x.sum()",
    "y = x.mean()",
    "y = x.exp().sum()",
    "y = torch.softmax(x.float(), -1)",
    "y = x.flatten() @ x.flatten()",
    "y = x @ x.t()",
    "y = torch.linalg.svdvals(x)",
    "y = x.float() @ x.float().t()",
    "y = x.t()",
    "x.unsqueeze_(0)",
    "x.requires_grad_()",
    "y = torch.nn.Parameter(x)",
    "y = torch.from_numpy(base)",
    "y = x.view(-1)",
    "x.set_(torch.ones(2))",
    "y = torch.stack([x, x])",
    "x.share_memory_()",
    "y = pickle.loads(pickle.dumps(x))",
    "y = copy.deepcopy(x)",
    "print(x.dtype, x.shape, x.stride(), x.is_contiguous())",
    "seen.append(x)",
    "y = torch.as_tensor(x)",
    "y = x.to('cuda')",
    "y = torch.tensor(base)",
    "numbers = x.tolist()",
)
_RESIZING = (
    "x.resize_(7).zero_()",
    "x.resize_(0)",
    "torch.add(x, 1, out=x)",
    "y = torch.cat([x, x], out=x)",
    "torch.cat([x, x], out=x)",
)
_SETUP = (
    ["n = 3"],
    ["shape = (2, 3)"],
    ["order = 'F'"],
    ["rows = [[1, 2], [3, 4]]"],
    ["base = np.arange(3.0)"],
    ["wide = np.arange(6.0).reshape(2, 3)"],
    ["rng = np.random.default_rng(0)"],
    ["def kept(array):", *indented(["kept.last = array", "return array"])],
)


def _array(choices: Choices) -> str:
    if not choices.chance(3):
        return choices.of(*(_FRESH if choices.chance() else _ARRAYS))
    kind = choices.below(4)
    dtype, order = choices.of(*_DTYPES), choices.of(*_ORDERS)
    given = {
        0: [f"np.{choices.of('zeros', 'ones')}({choices.of(*_SHAPES)}"],
        1: [f"np.full({choices.of(*_SHAPES)}", choices.of("0.5", "1", "base[0]", "True")],
        2: [f"np.eye({choices.of('3', 'n', '2, 3', '0')}"],
        3: [f"np.array({choices.of('[[1, 2], [3, 4]]', 'rows', '[base, base]', '[wide.T]', '(1, 2)')}"],
    }[kind]
    return ", ".join(part for part in [*given, dtype, order] if part) + ")"


def _site(choices: Choices) -> Lines:
    array = _array(choices)
    call = choices.of("torch.tensor", "torch.tensor", "tensor", "th.tensor")
    more = choices.of("", "", "", "", "", "", ", dtype=torch.float64", ", dtype=torch.float32", ", requires_grad=False")
    made = choices.of(f"{call}({array}{more})", f"{call}(data={array}{more})")
    kind = choices.below(6)
    if kind == 0:
        return [f"named = {array}", f"x = {call}(named{more})", choices.of("named += 1", "del named", "y = named")]
    if kind == 1:
        return [f"x, other = {made}, {made}"]
    if kind == 2:
        return [f"batch = [{made} for k in range(2)]", "x = batch[0]"]
    if kind == 3:
        return [f"x = {made}{choices.of('.float()', '.view(-1)', '[:1]', '.clone()', '.long()', '.unsqueeze(0)')}"]
    return [f"x = {made}"]


def program(choices: Choices) -> Program:
    """Return a program that makes a tensor of an array and goes on with it."""
    head = ["import copy, io, os, pickle", "import numpy as np", "import torch", "import torch as th"]
    head.append("from torch import tensor")
    if choices.chance(12):
        head.append(choices.of("torch.set_default_dtype(torch.float64)", "torch.set_default_device('cpu')"))
    after = choices.some(_AFTER, 3) + (choices.some(_RESIZING, 1) if choices.chance(4) else [])
    site = placed(choices, [*_site(choices), *after])
    return Program(text(head, needed(_SETUP, site), site))


search = Search("TL208", program, places=(VALUES,))
