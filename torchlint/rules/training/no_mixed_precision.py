"""A large convolutional network is trained on CUDA in float32 only.

The file takes a network of torchvision or timm, or trains convolutions on folders of photographs, moves it to CUDA,
makes the optimizer and runs the backward pass itself, and says nothing about precision.

## Why it costs

Tensor cores multiply float16 and bfloat16 several times faster than float32, and activations in half the bytes halve
the memory and the traffic of what lies between the products. Autocast chooses the type for each operation and keeps the
parameters in float32. What it brings depends on the GPU and the model; small networks, whose time goes into launching
kernels, gain nothing.

## What to write instead

```python
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(x), y)
loss.backward()
```

On GPUs without bfloat16 (before Ampere): `torch.autocast("cuda", dtype=torch.float16)` with a `torch.amp.GradScaler`.

## When to ignore it

On GPUs without tensor cores, for models that need all bits, and where the precision is decided in another file. The
values change, so that there is no fix.

Holds for torch 1.10 and newer. Read on the page of `torch.amp` of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import OPTIMIZERS
from torchlint.semantics.training.full_precision import decides_precision, is_first_optimizer, trains_on_cuda
from torchlint.syntax.calls import identifier

NETWORKS = re.compile(
    r"^(torchvision\.models\.(?!get_|list_|feature_extraction)|timm\.(models\.)?create_model|"
    r"segmentation_models_pytorch\.)"
)
PHOTOGRAPHS = frozenset(
    f"torchvision.datasets.{name}"
    for name in "ImageFolder ImageNet CocoDetection Cityscapes VOCSegmentation VOCDetection LSUN CelebA".split()
)
CONVOLUTIONS = frozenset(("torch.nn.Conv2d", "torch.nn.Conv3d", "torch.nn.ConvTranspose2d"))
SINCE = (1, 10)

rule = Rule(
    code="TL304",
    name="no-mixed-precision",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a large convolutional network is trained in float32 only",
    triggers=Triggers.all_of("backward", "step", ("models", "create_model", "datasets"), ("cuda", "to")),
    examples=(
        Example(
            bad="""
import torch
from torchvision import models

model = models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/amp.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html",
    ),
    documentation=__doc__,
    silences={
        "precision": "The file speaks of precision, of half types, or of a framework that decides about them.",
        "small": "Nothing shows a large network: there is less to gain.",
        "no-gpu": "Nothing is moved to CUDA for certain, or only where there is one of several kinds.",
        "no-training": "The file does not make the optimizer, or does not train.",
        "old": "The project supports versions of torch without `torch.autocast`.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=OPTIMIZERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the optimizer of a program in float32, once for a file."""
    if model.qualified_name(call.func) not in OPTIMIZERS or not is_first_optimizer(call, model):
        return
    if model.target.lacks(SINCE) or rule.silent("test", model.in_test(call)):
        return
    if decides_precision(model) or not _is_large(model) or not trains_on_cuda(model) or not _trains(model):
        return
    yield Finding(
        call,
        "The network is trained in float32 only: the tensor cores of the GPU are not used, and activations take twice "
        'the memory. Run the forward pass and the loss under `torch.autocast("cuda", dtype=torch.bfloat16)`, or in '
        "float16 with a `GradScaler`.",
    )


def _trains(model: Model) -> bool:
    return model.training_code.updates() and bool(model.backward.passes())


def _is_large(model: Model) -> bool:
    """Whether the file makes a network of a library, or convolutions for photographs."""
    names = {model.qualified_name(call.func) or "" for call in model.nodes(cst.Call)}
    if any(map(NETWORKS.match, names)) or _picks_network(model):
        return True
    return not names.isdisjoint(PHOTOGRAPHS) and not names.isdisjoint(CONVOLUTIONS)


def _picks_network(model: Model) -> bool:
    """Whether a network of torchvision is looked up by its name: ``models.__dict__[arch]()``."""
    looked_up = (node for node in model.nodes(cst.Attribute) if identifier(node) == "__dict__")
    return any(model.qualified_name(node.value) == "torchvision.models" for node in looked_up)
