"""Tensors made and moved: shapes, dtypes, chains of methods, devices in every spelling, what runs in between."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search

_SIZES = (
    "3",
    "size=(2, 3)",
    "2, 3",
    "(2, 3)",
    "n",
    "n, 2",
    "len(data)",
    "*shape",
    "0",
    "0, 2",
    "other.size(0)",
    "1, n, 1",
    "shape",
)
_DTYPES = ("", "torch.float64", "torch.long", "torch.bool", "torch.float16", "torch.uint8", "torch.complex64")
_RANGES = ("4", "n", "0, 6, 2", "2, n + 3", "5.5", "1, 2, 0.3", "n / 2", "0, 4.5", "start=1, end=n", "end=5")
_NUMBERS = ("0.5", "1", "2.7", "-3", "300", "True", "float('nan')", "1e30", "n", "n / 2", "n * 100.7", "scalar")
_DATA = (
    "[1, 2]",
    "[0.1, 2.7]",
    "[[1, 2], [3, 4]]",
    "[]",
    "3.5",
    "7",
    "True",
    "[n, n + 1]",
    "data",
    "(1, 2.5)",
    "[300, -1]",
    "[1e30, 2.0]",
    "np.arange(4)",
    "np.ones((2, 2), dtype=np.float32)",
    "array",
    "[float(n)] * 3",
    "[x / 3 for x in data]",
    "[scalar, scalar]",
)
_SCALARS = ("3.5", "7", "True")
"""Sizes to a legacy constructor, whose memory then holds whatever was there."""

_STEPS = (
    ".view(-1)",
    ".unsqueeze(0)",
    ".t()",
    "[None]",
    "[:, None]",
    "[..., None]",
    ".fill_(2.5)",
    ".zero_()",
    ".fill_(n)",
    ".double()",
    ".long()",
    ".half()",
    ".bool()",
    ".byte()",
    ".type(torch.long)",
    ".to(torch.float64)",
    ".to(data_type)",
    ".contiguous()",
    ".flatten()",
    ".reshape(-1, 1)",
    ".squeeze()",
    ".repeat(2, 1)",
    ".data",
    ".T",
    ".expand(2, -1)",
    "[0]",
    "[:1]",
    ".requires_grad_(False)",
    ".transpose(0, -1)",
    ".squeeze_()",
    ".unsqueeze_(0)",
)
_DEVICES = (
    "'cuda'",
    "device",
    "'cuda:1'",
    "torch.device('cuda')",
    "torch.device('cuda', 1)",
    "0",
    "chosen",
    "other.device",
    "options.device",
    "gpu",
    "nothing",
    "devices[0]",
    "f'cuda:{gpu}'",
    "pick()",
    "torch.device(f'cuda:{gpu}')",
    "'nowhere'",
)
_AFTER = (
    "y = x + 1",
    "x += 1",
    "x.zero_()",
    "y = x.view(-1)",
    "x.requires_grad_()",
    "x = x.detach_()",
    "x.detach_()",
    "y = [x, x]",
    "y = x.clone()",
    "y = x.t()",
    "x.resize_(7).zero_()",
    "x.unsqueeze_(0)",
    "x.squeeze_()",
    "y = x.sum()",
    "print(x.shape, x.dtype, x.stride(), x.requires_grad)",
    "y = x.detach()",
    "y = x.data",
    "x.data = x.data + 1",
    "y = torch.nn.Parameter(x)",
    "y = x.to(torch.float32)",
    "y = torch.stack([x, x])",
    "weight = torch.ones((), device=x.device, requires_grad=True); z = weight * x; z.sum().backward()",
    "weight = torch.ones((), device=x.device, requires_grad=True); x *= weight; x.sum().backward()",
    "x.set_(torch.ones(2, device=x.device))",
    "seen.append(x)",
    "x = x.cpu()",
    "y = x.is_contiguous()",
)
_BETWEEN = (
    "device = 'cpu'",
    "n = 7",
    "r = torch.rand(2)",
    "torch.manual_seed(1)",
    "torch.set_default_dtype(torch.float64)",
    "gpu = 1",
    "data_type = torch.float16",
    "seen.append(1)",
    "y = x",
    "y = other.clone()",
    "other = other.double()",
    "chosen = 'cuda:1'",
    "turn()",
    "options.device = 'cuda:1'",
    "for device in ('cuda:1', 'cuda'): pass",
    "with torch.no_grad(): y = torch.ones(2)",
    "torch.set_grad_enabled(False)",
    "def show(): return x",
    "del data[:]",
    "look()",
    "change()",
    "seen.append(locals()['x'])",
    "seen.append(globals().get('x'))",
    "seen.append(eval('x'))",
    "def show(): seen.append(x)\nshow()",
    "late = lambda: seen.append(x)",
    "seen.append([x for _ in range(2)])",
    "try:\n    print(x.device)\nexcept NameError: pass",
    "torch.set_default_device('cuda:1')",
)


def _setup(choices: Choices) -> list[Lines]:
    default = choices.of("'cuda'", "torch.device('cuda')", "'cuda:1'", "torch.device('cuda:0')", "None", "'cpu'")
    return [
        [f"device = {default}"],
        [f"n = {choices.of(3, 2, 1, 0)}"],
        ["shape = (2, 3)"],
        ["data = [1, 2]"],
        ["array = np.arange(3.0)"],
        [f"gpu, nothing = {choices.of('0', '1', 'None')}, None"],
        [f"chosen = {choices.of(repr('cuda'), repr('cpu'), 'None')} if n > 1 else 'cuda:1'"],
        [f"other = torch.ones(2, 3, device={choices.of('device', repr('cuda'), repr('cpu'))})"],
        [f"scalar = {choices.of('torch.tensor(2.5)', '2.5', 'torch.tensor(2.5).cuda()')}"],
        ["data_type = torch.float32"],
        ["devices = ['cuda:1', 'cuda:0']"],
        ["class options:", "    device = 'cuda'"],
        ["def pick():", *indented(["seen.append('picked')", "return devices.pop()"])],
        ["def look():", *indented(["seen.append(globals().get('x'))"])],
        ["def change():", *indented(["global x", "x = globals().get('x', torch.ones(2)) + 1"])],
        ["def turn():", *indented(["global device, n", "device, n = 'cuda:1', 1"])],
    ]


def _factory(choices: Choices, torch: str) -> str:
    keywords = []
    dtype = choices.of(*_DTYPES) if choices.chance(3) else ""
    if dtype:
        keywords.append(f"dtype={dtype}")
    if choices.chance(12):
        keywords.append(choices.of("requires_grad=False", "requires_grad=True", "layout=torch.strided"))
    kind = choices.below(9)
    if kind < 2:
        given = [f"{torch}.{choices.of('zeros', 'ones')}", choices.of(*_SIZES)]
    elif kind == 2:
        value = choices.of("", "", "fill_value=") + choices.of(*_NUMBERS)
        given = [f"{torch}.full", choices.of("(2,)", "(n,)", "(2, 3)", "shape", "()", "(1, 2)"), value]
    elif kind == 3:
        given = [f"{torch}.eye", choices.of("3", "n", "2, 3")]
    elif kind == 4:
        given = [
            f"{torch}.arange",
            choices.of(
                "4", "n", "0, 6, 2", "2, n + 3", "5.5", "1, 2, 0.3", "n / 2", "0, 4.5", "start=1, end=n", "end=5"
            ),
        ]
    elif kind < 7:
        given = [f"{torch}.{choices.of('tensor', 'tensor', 'as_tensor')}", choices.of(*_DATA)]
    elif kind == 7:
        return f"{torch}.empty({choices.of(*_SIZES)}).fill_({choices.of(*_NUMBERS)})"
    else:
        legacy = choices.of("FloatTensor", "LongTensor", "ByteTensor", "DoubleTensor", "BoolTensor", "Tensor")
        given = [f"{torch}.{legacy}"]
        if choices.chance(3):
            return f"{given[0]}({choices.of('2, 3', 'n', 'n, 2', 'len(data)', 'shape')}).zero_()"
        return f"{given[0]}({choices.of(*(data for data in _DATA if data not in _SCALARS))})"
    return f"{given[0]}({', '.join(given[1:] + keywords)})"


def _move(choices: Choices) -> str:
    device = choices.of(*_DEVICES)
    kind = choices.below(8)
    if kind < 2:
        return f".to({device})"
    if kind == 2:
        return choices.of(".cuda()", ".cuda(non_blocking=True)", ".cuda(0)")
    if kind == 3:
        return f".cuda({device})"
    if kind == 4:
        dtype = choices.of("torch.float16", "torch.long", "torch.float64", "data_type", "other.dtype", "torch.uint8")
        return choices.of(f".to({device}, {dtype})", f".to(dtype={dtype}, device={device})")
    if kind == 5:
        flags = ("non_blocking=True", "copy=True", "memory_format=torch.preserve_format", "dtype=None")
        return f".to(device={device}, {choices.of(*flags)})"
    if kind == 6:
        return choices.of(".type_as(other)", ".to(other)", ".to(options.device)")
    return f".to(device={device})"


def _site(choices: Choices, torch: str) -> Lines:
    """Return lines that make a tensor and move it."""
    made, move = _factory(choices, torch), _move(choices)
    steps = "".join(choices.some(_STEPS, 2))
    kind = choices.below(10)
    if kind < 4:
        return [f"x = {made}{steps}{move}"]
    if kind < 6:
        between = [line for each in choices.some(_BETWEEN, 2) for line in each.split("\n")]
        first = choices.of("x", "x", "x", "x = y", "x, y", "self.x", "x: torch.Tensor")
        then, whole = choices.of("x", "x", "x", "y"), f"{made}, {made}" if first == "x, y" else made
        if first == "self.x":
            owner = ["class Owner:", "    def look(self): seen.append(self.x)"]
            if choices.chance(4):
                owner += indented(["def __setattr__(self, name, value): seen.append(name); vars(self)[name] = value"])
            owner += ["    def __init__(self):"]
            inside = [f"self.x = {made}", choices.of("self.look()", "pass", "look()"), f"self.x = self.x{steps}{move}"]
            return [*owner, *indented(indented(inside)), "x = Owner().x"]
        lines = [f"{first} = {whole}", *between, f"{then} = x{steps}{move}"]
        if choices.chance(4):
            handler = choices.of("except (RuntimeError, AssertionError):", "except Exception:", "finally:")
            return ["try:", *indented(lines), handler, "    seen.append('tried')"]
        return lines
    if kind == 6:
        return [f"x = torch.nn.Parameter({made}{steps}{move}, requires_grad=False)"]
    if kind == 7 and choices.chance():
        header = choices.of("def make(device=None):", "def make(device='cuda:1', n=2):", "def make(n=0, *, gpu=None):")
        return [header, f"    return {made}{steps}{move}", f"x = {choices.of('make()', 'make(device)', 'make(n=2)')}"]
    if kind == 7:
        return [f"x = Variable({made}{steps}){move}" if choices.chance() else f"x = Variable({made}{steps}{move})"]
    if kind == 8:
        return [f"pair = [{made}{steps}{move} for device in ('cuda', 'cuda:1')]", "x = pair[0]"]
    header = choices.of("torch.no_grad()", "torch.inference_mode()", "torch.device('cuda:1')", "torch.enable_grad()")
    inside = [f"x = {made}", *(line for each in choices.some(_BETWEEN, 1) for line in each.split("\n"))]
    if choices.chance():
        return [f"with {header}:", *indented([*inside, f"x = x{steps}{move}"])]
    return [f"with {header}:", *indented(inside), f"x = x{steps}{move}"]


def program(choices: Choices) -> Program:
    """Return a program that makes a tensor and moves it, perhaps twice."""
    alias = choices.of("torch", "torch", "th")
    head = [
        "import numpy as np",
        "import torch",
        *(["import torch as th"] if alias == "th" else []),
        "from torch.autograd import Variable",
    ]
    if choices.chance(12):
        head.append(choices.of("torch.set_default_dtype(torch.float64)", "torch.set_default_device('cuda:1')"))
    site = placed(choices, [*_site(choices, alias), *choices.some(_AFTER, 3)])
    again = placed(choices, _site(choices, alias)) if choices.chance(4) else []
    return Program(text(head, needed(_setup(choices), [*site, *again]), site, again))


search = Search("TL201", program)
