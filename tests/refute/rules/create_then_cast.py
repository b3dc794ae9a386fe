"""Tensors made and cast: sizes, numbers at the borders of dtypes, casts in every spelling, what follows."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, indented, needed, placed, text
from tests.refute.search import Program, Search

_SIZES = (
    "3", "2, 3", "(2, 3)", "n", "n, 2", "0", "0, 2", "*shape", "shape", "other.size(0)", "len(data)", "size=(2, n)",
    "()", "[n, 2]", "1, n, 1",
)  # fmt: skip
_NUMBERS = (
    "1", "0", "2", "0.5", "-1", "1.0", "255", "256", "127", "-128", "2048", "2049", "257", "65504", "65536", "3.0",
    "16777216", "16777217", "0.1", "1e-8", "2147483647", "2147483648", "9007199254740993", "True", "False", "-0.0",
    "n", "n / 2", "1e30", "0.25", "-2.0", "1.5", "-1.5", "1024.0", "32767", "32768", "5.960464477539063e-08", "2.5",
)  # fmt: skip
_BOUNDS = ("4", "1", "0, 1", "0, 6, 2", "1, 5", "n", "2, n + 3", "10, 0, -3", "300", "0, 3000, 500", "5.5",
           "0, 1, 0.25", "end=5", "1, 2.5", "-3, 3", "0, 300, 100", "256, 260",
           "0, 2, step=0.5", "0, end=2.5", "start=0, end=6, step=2", "1, step=2, end=n", "*shape")  # fmt: skip
_METHODS = (".half()", ".double()", ".float()", ".bfloat16()", ".long()", ".int()", ".short()", ".char()", ".byte()",
            ".bool()")  # fmt: skip
_TO_WHOLE = _METHODS[4:]  # only such casts have safe fixes
_DTYPES = ("torch.float16", "torch.bfloat16", "torch.float64", "torch.long", "torch.int32", "torch.int16", "torch.int8",
           "torch.uint8", "torch.bool", "torch.complex64", "kind", "other.dtype", "options.dtype", "torch.half",
           "torch.float32", "nothing", "other", "'cpu'", "torch.uint16", "torch.float8_e4m3fn",
           "kinds[0]", "torch.half if n > 2 else 'cpu'")  # fmt: skip
_AFTER = (
    "y = x + 1",
    "x += 1",
    "x.zero_()",
    "y = x.view(-1)",
    "x = x.detach_()",
    "y = [x, x]",
    "y = x.clone()",
    "y = x.t()",
    "y = x.sum()",
    "y = x.float() @ x.float().t()",
    "print(x.shape, x.dtype, x.stride(), x.requires_grad, x.device)",
    "y = torch.nn.Parameter(x, requires_grad=False)",
    "y = torch.nn.Parameter(x.double())",
    "weight = torch.ones((), device=x.device, requires_grad=True); z = weight * x; z.sum().backward()",
    "seen.append(x)",
    "x = x.cpu()",
    "x.unsqueeze_(0)",
    "x.set_(torch.ones(2, device=x.device, dtype=x.dtype))",
    "y = x.new_ones(3)",
    "y = torch.stack([x, x])",
    "y = x / 3",
    "x.requires_grad_()",
    "y = x.is_inference()",
    "numbers = x.tolist()",
    "y = other + x.sum()",
    "torch.set_default_dtype(torch.float64)",
)
_SETUP: tuple[Lines, ...] = (
    ["n = 3"],
    ["shape = (2, 3)"],
    ["data = [1, 2]"],
    ["kind = torch.float16"],
    ["nothing = None"],
    ["kinds = [torch.float16]", "kinds[0] = 'cpu'"],
    ["class options:", "    dtype = torch.bfloat16"],
    ["other = torch.ones(2, 3, dtype=torch.float64)"],
)


def _data(choices: Choices) -> str:
    kind = choices.below(5)
    if kind == 0:
        return choices.of(*_NUMBERS)
    numbers = [choices.of(*_NUMBERS) for _ in range(choices.of(1, 2, 3, 0))]
    if kind < 4:
        return f"[{', '.join(numbers)}]"
    return choices.of("data", "[data, data]", "([1, 0], [0, 1])", "other", "np.ones(3)", "[[True], [False]]", "[*data]")


def _factory(choices: Choices, torch: str) -> str:
    kind = choices.below(8)
    if kind < 3:
        given = [f"{torch}.{choices.of('zeros', 'ones')}", choices.of(*_SIZES)]
    elif kind == 3:
        given = [f"{torch}.eye", choices.of("3", "n", "2, 3", "0")]
    elif kind == 4:
        shape = choices.of("(2,)", "(n, 2)", "shape", "()", "(0,)")
        given = [f"{torch}.full", shape, choices.of("", "fill_value=") + choices.of(*_NUMBERS)]
    elif kind == 5:
        given = [f"{torch}.arange", choices.of(*_BOUNDS)]
    else:
        given = [f"{torch}.{choices.of('tensor', 'tensor', 'as_tensor')}", choices.of("", "data=") + _data(choices)]
    if choices.chance(4):
        given.append(
            choices.of("device='cuda'", "device='cuda:1'", "device='cpu'", "requires_grad=False", "device=None")
        )
    if choices.chance(15):
        given.append(choices.of("requires_grad=True", "dtype=torch.float32", "dtype=None", "layout=torch.strided"))
    return f"{given[0]}({', '.join(given[1:])})"


def _cast(choices: Choices) -> str:
    kind = choices.below(6)
    if kind < 4:
        return choices.of(*_METHODS) if kind < 2 else choices.of(*_TO_WHOLE)
    dtype = choices.of(*_DTYPES)
    return choices.of(f".to({dtype})", f".to(dtype={dtype})", f".type({dtype})", f".type(dtype={dtype})")


def _site(choices: Choices, torch: str) -> Lines:
    made = f"{_factory(choices, torch)}{_cast(choices)}"
    kind = choices.below(8)
    if kind == 0:
        return [f"x = ({made})"]
    if kind == 1:
        return [f"x, other = {made}, {made}"]
    if kind == 2:
        return [f"x = [{made} for k in range(2)][0]"]
    if kind == 3:
        return [
            f"x = {made}{choices.of('.view(-1)', '.unsqueeze(0)', '.clone()', '[None]', '.contiguous()', '.float()')}"
        ]
    if kind == 4 and choices.chance(4):
        return [f"x = [f'{{{made}{choices.of('=', '', '!r', '=!s')}}}', {made}][1]", f"print(f'{{{made}=}}')"]
    if kind == 4 and choices.chance(4):
        return _importing(choices)
    if kind == 4:
        return ["def make(n=2):", f"    return {made}", f"x = {choices.of('make()', 'make(0)', 'make(n=1)')}"]
    return [f"x = {made}"]


def _importing(choices: Choices) -> Lines:
    """A function that imports torch before, after, or around what it makes."""
    made = f"    made = {_factory(choices, 'torch').removeprefix('torch.')}{choices.of(*_METHODS)}"
    here, maybe = ["    import torch"], ["    if n > 2:", "        import torch"]
    body = choices.of([*here, made], [made, *here], [*maybe, made], [made], [*maybe, f"    {made}", made])
    return [
        "def make(n=2):",
        f"    from torch import {choices.of('', 'float64, ')}arange, as_tensor, eye, full, ones, tensor, zeros",
        *body,
        "    return made",
        f"x = make({choices.of('', '3')})",
    ]


def program(choices: Choices) -> Program:
    """Return a program that makes a tensor and casts it."""
    alias = choices.of("torch", "torch", "th")
    head = ["import numpy as np", "import torch", *(["import torch as th"] if alias == "th" else [])]
    if choices.chance(6):
        head.append(
            choices.of(
                "torch.set_default_dtype(torch.float64)",
                "torch.set_default_dtype(torch.float16)",
                "torch.set_default_dtype(torch.bfloat16)",
                "torch.set_default_device('cuda:1')",
            )
        )
    site = placed(choices, [*_site(choices, alias), *choices.some(_AFTER, 3)])
    if choices.chance(12):
        site = [
            f"with {choices.of('torch.device(0)', 'torch.autocast(chr(99) + chr(112) + chr(117))')}:",
            *indented(site),
        ]
    return Program(text(head, needed(_SETUP, site), site))


search = Search("TL219", program)
