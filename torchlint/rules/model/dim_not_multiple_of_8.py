"""A hidden size or a vocabulary of a network that is trained in 16 bits on CUDA is no multiple of 8.

`nn.Linear(512, 1001)` whose outputs go into `nn.Linear(1001, 512)`, and `nn.Embedding(50257, 768)` with
`nn.Linear(768, 50257)`: sizes above 64 that the program chooses, in a file that trains under autocast or in half types.

## Why it costs

Tensor cores multiply blocks of 8 numbers of 16 bits. Rows whose length is no multiple of 8 do not start at an aligned
address, so that the library takes slower kernels, which load fewer numbers at once, or pads the matrices first.

## What to write instead

The next multiple of 8 (64 is better still): 1008 for 1001, 50264 or 50304 for 50257. Entries of a vocabulary that no
token has cost nothing but their memory; leave them out when sampling.

## When to ignore it

Where a checkpoint fixes the size, or the layer is a small part of the model. There is no figure of torchlint's own: it
takes a GPU with tensor cores.

Read in the tuning guide of PyTorch, which asks for multiples of 8 under mixed precision, and in NVIDIA's guide to
matrix multiplication, by which newer libraries use tensor cores for other sizes too, with less efficiency.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.training.full_precision import trains_on_cuda
from torchlint.syntax.calls import method_call

LINEAR = "torch.nn.Linear"
EMBEDDING = "torch.nn.Embedding"
SIGNATURES = {LINEAR: ("in_features", "out_features"), EMBEDDING: ("num_embeddings", "embedding_dim")}
BLOCK = 8
SMALL = 64
HALVES = ("half", "bfloat16")
HALF_TYPES = ("torch.float16", "torch.half", "torch.bfloat16")

rule = Rule(
    code="TL404",
    name="dim-not-multiple-of-8",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a hidden size that does not fit tensor cores",
    triggers=Triggers.all_of("Linear", "backward", ("autocast", *HALVES, "float16"), ("cuda", "to")),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1001), nn.ReLU(), nn.Linear(1001, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x.cuda()).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#use-tensor-cores",
        "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
    ),
    documentation=__doc__,
    silences={
        "fits": "The size is a multiple of 8, or at most 64.",
        "given": "The size is not chosen: inputs, classes, or an expression decide about it.",
        "full-precision": "Nothing in the file computes in 16 bits, or it does not train on CUDA.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=(LINEAR, EMBEDDING))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a layer whose size could be a multiple of 8."""
    size = _made(call, model)
    if size is None or rule.silent("fits", size <= SMALL or size % BLOCK == 0):
        return
    if rule.silent("given", not _is_chosen(call, size, model)) or rule.silent("test", model.in_test(call)):
        return
    if not _in_half(model) or not trains_on_cuda(model) or not model.training_code.updates():
        return
    padded = -(-size // BLOCK) * BLOCK
    yield Finding(
        call,
        f"The size {size} is no multiple of 8: tensor cores multiply blocks of 8 numbers of 16 bits, and other sizes "
        f"take slower kernels. Make it {padded}, here and where it is used.",
    )


def _made(call: cst.Call, model: Model) -> int | None:
    """Return the number of outputs of a linear layer, or of entries of an embedding."""
    name = model.callee(call)
    parameter = {LINEAR: "out_features", EMBEDDING: "num_embeddings"}.get(name or "")
    return _size(call, name or "", parameter, model) if parameter is not None else None


def _size(call: cst.Call, name: str, parameter: str, model: Model) -> int | None:
    """Return an argument that is a constant, or a name that only ever stands for one."""
    given = model.arguments(call, SIGNATURES[name]).get(parameter)
    value = model.value(given).literal if given is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_chosen(call: cst.Call, size: int, model: Model) -> bool:
    """Whether another linear layer of the same class or function has the size on its other side."""
    is_embedding = model.callee(call) == EMBEDDING
    wanted = "out_features" if is_embedding else "in_features"
    around = None if is_embedding else model.enclosing(call, cst.ClassDef, cst.FunctionDef)
    for other in model.nodes(cst.Call):
        if other is call or model.callee(other) != LINEAR or _size(other, LINEAR, wanted, model) != size:
            continue
        if around is None or model.within(other, around):
            return True
    return False


def _in_half(model: Model) -> bool:
    """Whether something in the file computes in 16 bits on an accelerator."""
    for call in model.nodes(cst.Call):
        entered = model.precision.autocast(call)
        if entered is not None and entered.device != "cpu" and entered.enabled is not False:
            return True
        if method_call(call, *HALVES) is not None and not call.args:
            return True
    moves = (call for call in model.nodes(cst.Call) if method_call(call, "to") is not None)
    return any(model.qualified_name(a.value) in HALF_TYPES for call in moves for a in call.args)
