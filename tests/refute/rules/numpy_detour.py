"""Tensors that NumPy makes, with shapes, dtypes and orders in every spelling, and what becomes of them."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search
from tests.torch.stand_in import VALUES

_SHAPES = (
    "3", "(2, 3)", "4", "(3, 1)", "[5]", "(2, 3)", "(0, 3)",
    "(2, 1, 3)", "n", "(n, 2)", "()", "shape", "[2, 2]", "len(rows)", "array.shape", "0",
    "array.shape[0]", "(n + 1, 2)", "x0.size(0)", "x0.shape", "wide", "-1", "(n * 2,)", "True", "2.0",
)  # fmt: skip
_DTYPES = (
    "", "", "", "np.float32", "np.float64", "float", "bool", "np.int64", "np.int32", "'float32'", "'uint8'", "np.bool_",
    "np.float16", "int", "np.double", "'>f4'", "np.uint16", "np.complex64", "kind", "'half'", "'f4'",
)  # fmt: skip
_NUMBERS = (
    "0.5", "1", "0", "2.7", "True", "False", "127", "128", "300", "-1", "0.1", "1e-8", "1e29", "3e38", "1e300", "n",
    "float('nan')", "array[0]", "1 / 3", "16777217", "0.1 + 0.2", "None",
)  # fmt: skip
_SIZES = (
    "3",
    "2",
    "4, 2",
    "n",
    "0",
    "2, 3",
    "n, 2",
    "len(rows)",
    "3, None",
    "3, 3, 1",
    "3, k=1",
    "N=2",
    "array.size",
    "True",
)
_CASTS = ("np.float32", "'float64'", "bool", "np.int64", "np.uint8", "kind", "int", "np.float16")
_TORCH_DTYPES = ("torch.float32", "torch.float16", "torch.long", "torch.bool", "torch.bfloat16", "torch.complex64")
_AFTER = (
    "seen.append(eval('np.ones(2) + 1'))",
    "exec('late = numpy.ones(1) + 1')",
    "seen.append(sorted(name for name in globals() if name in {'n' + 'p', 'num' + 'py'}))",
    "seen.append('{0[np].pi:.2f}'.format(globals()))",
    "x += 1",
    "x.zero_()",
    "x = x.double()",
    "y = x.numpy()",
    "y = x.view(-1)",
    "y = x @ x.t()",
    "y = x.float() @ x.float().t()",
    "y = x.sum()",
    "y = x.float().mean()",
    "y = x / 3",
    "y = x * 0.1",
    "y = torch.softmax(x.double(), -1)",
    "y = x.exp().sum()",
    "x.requires_grad_()",
    "y = torch.nn.Parameter(x)",
    "x.unsqueeze_(0)",
    "y = torch.stack([x, x])",
    "y = pickle.loads(pickle.dumps(x))",
    "y = copy.deepcopy(x)",
    "print(x.dtype, x.shape, x.stride(), x.is_contiguous(), x.requires_grad)",
    "print(x)",
    "seen.append(x)",
    "y = torch.as_tensor(x)",
    "numbers = x.tolist()",
    "x.set_(torch.ones(2, dtype=x.dtype))",
    "x.share_memory_()",
    "y = x.t()",
    "y = x.to('cuda')",
    "x.detach_()",
    "x.resize_(2, 2).zero_()",
    "y = torch.add(x, 1, out=x)",
    "y = x.numpy(); y += 1",
    "y = x.untyped_storage().nbytes()",
    "y = x.new_zeros(2)",
    "y = np.asarray(x) * 2",
)
_SETUP = (
    ["n = 3"],
    ["shape = (2, 3)"],
    ["rows = [[1, 2], [3, 4]]"],
    ["array = np.arange(3.0)"],
    ["wide = np.array([2, 3])"],
    ["kind = np.float32"],
    ["x0 = torch.ones(2, 3)"],
)


def _array(choices: Choices) -> str:
    numpy, dtype = choices.of("np", "np", "np", "numpy"), choices.of(*_DTYPES)
    written = choices.of(f"dtype={dtype}", f"dtype={dtype}", dtype) if dtype else ""
    kind = choices.below(6)
    if kind < 3:
        name, given = choices.of("zeros", "ones"), choices.of(*_SHAPES)
    elif kind == 3:
        name, given = "full", f"{choices.of(*_SHAPES)}, {choices.of('', '', 'fill_value=')}{choices.of(*_NUMBERS)}"
    elif kind == 4:
        name, given = choices.of("eye", "identity"), choices.of(*_SIZES)
        written = f"dtype={dtype}" if dtype else ""
    else:
        name, given = "zeros", f"{choices.of(*_SHAPES)}, order={choices.of(repr('C'), repr('F'))}"
        written = ""
    parts = [given, written] if "=" not in given or "=" in written else [written, given]
    return f"{numpy}.{name}({', '.join(part for part in parts if part)})"


def _site(choices: Choices) -> Lines:
    array = _array(choices)
    if choices.chance(5):
        array += choices.of(f".astype({choices.of(*_CASTS)})", ".copy()", f".astype({choices.of(*_CASTS)}, copy=False)")
    kind = choices.below(8)
    if kind < 4:
        made = f"torch.from_numpy({array})"
    elif kind == 4:
        made = f"torch.as_tensor({array}{choices.of('', f', dtype={choices.of(*_TORCH_DTYPES)}')})"
    elif kind == 5:
        more = choices.of("", ", requires_grad=True", ", device='cpu'", ", pin_memory=False")
        made = f"torch.tensor({array}, dtype={choices.of(*_TORCH_DTYPES)}{more})"
    elif kind == 6:
        made = f"torch.{choices.of('FloatTensor', 'Tensor', 'DoubleTensor', 'LongTensor')}({array})"
    else:
        made = f"th.from_numpy({array})"
    form = choices.below(6)
    if form == 0:
        return [f"x, other = {made}, {made}"]
    if form == 1:
        return [f"batch = [{made} for k in range(2)]", "x = batch[0]"]
    if form == 2:
        return [f"x = {made}{choices.of('.float()', '.view(-1)', '[:1]', '.clone()', '.unsqueeze(0)', '.t()')}"]
    return [f"x = {made}"]


def program(choices: Choices) -> Program:
    """Return a program that lets NumPy make a tensor and goes on with it."""
    head = ["import copy, pickle", "import numpy", "import numpy as np", "import torch", "import torch as th"]
    if choices.chance(12):
        head.append(choices.of("torch.set_default_dtype(torch.float64)", "torch.set_default_device('cpu')"))
    after = choices.some(_AFTER, 3)
    if "x.share_memory_()" in after:  # a tensor in shared memory that grows ends the process
        after = [line for line in after if "resize_" not in line]
    site = placed(choices, [*_site(choices), *after])
    if choices.chance(15):
        site = ["with torch.device('cpu'):", *indented(site)]
    return Program(text(head, needed(_SETUP, site), site))


search = Search("TL209", program, places=(VALUES,))
