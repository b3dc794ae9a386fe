"""Deprecated functions with every argument that they take, on matrices of all kinds, with what their results show."""

from __future__ import annotations

from tests.refute.choices import Choices, Lines, needed, placed, text
from tests.refute.observe import Difference
from tests.refute.search import Program, Search
from tests.torch.stand_in import META, VALUES

_MATRICES = (
    "good",
    "good.t()",
    "good.double()",
    "batch",
    "lower",
    "good @ good",
    "good[:2, :2]",
    "torch.zeros(0, 0)",
    "torch.eye(3)",
    "tall",
    "tall.t()",
    "wide",
    "leaf",
    "good.to(torch.complex64)",
    "torch.ones(1, 1)",
)
_CALLS = (
    "torch.cholesky({m})",
    "torch.cholesky({m}, False)",
    "torch.cholesky({m}, upper=False)",
    "torch.cholesky({m}, upper=True)",
    "torch.cholesky(input={m})",
    "torch.cholesky({m}, out=room)",
    "torch.qr({m})",
    "torch.qr({m}, True)",
    "torch.qr({m}, some=False)",
    "torch.qr(input={m}, some=flag)",
    "torch.qr({m})[0]",
    "torch.qr({m}).R",
    "torch.qr({m}, out=(room, other))",
    "torch.chain_matmul({m}, {n})",
    "torch.chain_matmul({m}, {n}, {m})",
    "torch.chain_matmul({m}, {n}, {m}, {n})",
    "torch.chain_matmul(*[{m}, {n}])",
    "torch.chain_matmul({m}, {n}, out=room)",
    "torch.range(0, 5)",
    "torch.range(1, 4, 2)",
    "torch.range(5, 1, -1)",
    "torch.range(0, 6, 4)",
    "torch.range(3, 3)",
    "torch.range(0, 2, 0.5)",
    "torch.range(0, size)",
    "torch.range(1, 5, dtype=torch.int64)",
    "torch.range(start=1, end=5)",
    "torch.range(end=4)",
    "torch.range(0, 5, requires_grad=True)",
    "torch.range(0, 5, out=room)",
    "torch.range(-3, 3)",
    "torch.range(0, 5, device='cuda')",
    "torch.range(0, 5, dtype=torch.float16)",
    "torch.range(0, 16777220, 4194305)",
    "torch.range(0, 3, dtype=None)",
    "torch.range(0, 3, out=None)",
    "torch.range(0, 3, dtype=wanted)",
    "torch.ger.__name__",
    "[{{torch.ger: 1}}.get(torch.outer), torch.ger is torch.outer]",
    "isinstance(torch.cuda.amp.autocast(enabled=False), torch.cuda.amp.autocast)",
    "torch.ger({v}, {v})",
    "torch.ger(input={v}, vec2={v})",
    "torch.ger({v}, {v}, out=room)",
    "nn.init.uniform({w})",
    "nn.init.normal({w}, 0, 2)",
    "torch.nn.init.xavier_uniform({w}, gain=2)",
    "torch.nn.init.constant({w}, 0.5)",
    "nn.init.kaiming_normal({w}, mode='fan_out')",
    "nn.init.orthogonal({w})",
    "nn.init.eye({w})",
    "torch.nn.utils.clip_grad_norm([leaf], 0.5)",
    "nn.utils.clip_grad_norm([leaf], max_norm=0.1, norm_type=1)",
    "F.upsample(image, scale_factor=2)",
    "F.upsample(image, (5, 5), mode='bilinear')",
    "F.upsample(image, size=6, mode='bilinear', align_corners=True)",
    "torch.nn.functional.upsample(image, None, 2, 'bicubic')",
    "nn.NLLLoss2d()",
    "nn.UpsamplingNearest2d(scale_factor=2)",
    "nn.UpsamplingBilinear2d(scale_factor=2)(image)",
    "functorch.vmap(double)(good)",
    "functorch.grad(lambda x: (x * x).sum())(good)",
    "torch.cuda.amp.GradScaler(enabled=False)",
    "torch.cpu.amp.autocast(enabled=False)",
)
_AFTER = (
    "y = x.stride() if isinstance(x, torch.Tensor) else x",
    "y = x * 2",
    "x += 1",
    "y = x.t()",
    "x.sum().backward()",
    "q, r = x",
    "y = x[0]",
    "y = x.dtype",
    "x.requires_grad_()",
    "seen.append(x)",
    "y = x.view(-1)",
    "y = x.Q @ x.R",
    "y = x.is_contiguous()",
)
_SETUP = (
    ["n = 3"],
    ["size = 3"],
    ["wanted = None"],
    ["flag = True"],
    ["good = torch.tensor([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])"],
    ["lower = torch.tensor([[4.0, 9, 9], [1, 3, 9], [0, 1, 2]])"],
    ["batch = torch.stack([good, good * 2])"],
    ["tall = torch.arange(12.0).reshape(4, 3).sin()"],
    ["wide = torch.arange(12.0).reshape(3, 4).cos()"],
    ["leaf = good.clone().requires_grad_(); leaf.square().sum().backward()"],
    ["vector = torch.arange(3.0)"],
    ["image = torch.arange(32.0).reshape(1, 2, 4, 4)"],
    ["room = torch.zeros(0)"],
    ["other = torch.zeros(0)"],
    ["def double(x):", "    return x * 2"],
)


def program(choices: Choices) -> Program:
    """Return a program that calls deprecated functions."""
    lines: Lines = []
    for _ in range(1 + choices.below(2)):
        call = choices.of(*_CALLS).format(
            m=choices.of(*_MATRICES),
            n=choices.of("good", "tall.t()", "wide", "vector"),
            v=choices.of("vector", "vector * 2", "good[0]", "good[:, 0]"),
            w=choices.of("torch.zeros(3, 3)", "leaf", "torch.empty(2, 4).zero_()", "image"),
        )
        lines += [f"x = {call}", *choices.some(_AFTER, 2)]
    head = ["import functorch", "import torch", "import torch.nn.functional as F", "from torch import nn"]
    if choices.chance(8):
        head.append(choices.of("torch.set_default_dtype(torch.float64)", "torch.set_default_device('meta')"))
    site = placed(choices, lines)
    return Program(text(head, needed(_SETUP, site), site), "2.6")


def is_the_fix(difference: Difference) -> bool:
    """Whether only the type of a tuple has another name."""
    return difference.what.endswith("is 'qr', then 'linalg_qr'") or difference.what.endswith(
        "is 'qr_out', then 'linalg_qr_out'"
    )


search = Search("TL802", program, places=(VALUES, META), is_the_fix=is_the_fix)
