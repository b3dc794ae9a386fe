"""A convolutional network is trained under autocast on CUDA, with its tensors in the default memory format.

The file makes a network of two-dimensional convolutions, or takes one of torchvision's, moves it to CUDA, makes the
optimizer and trains under `autocast`, and nothing in it speaks of a memory format.

## Why it costs

Tensor cores take convolutions channel by channel (NHWC). Tensors in the default format (NCHW) are transposed by cuDNN
before and after each convolution, or a slower kernel is used. PyTorch's tutorial on the format reports 8 to 35 % for
networks of torchvision under mixed precision on V100 GPUs. Networks of depthwise convolutions, and very small ones, can
be slower.

## What to write instead

```python
model = model.to(memory_format=torch.channels_last)
for images, labels in loader:
    images = images.to(device, memory_format=torch.channels_last, non_blocking=True)
```

It changes how tensors lie in memory, not their shapes: `x.view(...)` of an activation can fail, `x.reshape(...)` and
`x.flatten(1)` do not.

## When to ignore it

Where it was measured and does not pay, or the loop in another file sets it. There is no figure of torchlint's own: it
takes a GPU with tensor cores.

Holds for torch 1.5 and newer. Read in the tutorial "Channels Last Memory Format in PyTorch".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.training.full_precision import trains_on_cuda
from torchlint.semantics.training.precision import Autocast
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier

FORMAT = re.compile(r"channels?_last|memory_format|nhwc", re.IGNORECASE)
NETWORKS = re.compile(
    r"^torchvision\.models\.((detection|segmentation)\.)?(\w*resne[x]?t|resnext|vgg|densenet|efficientnet|convnext|regnet|"
    r"inception|googlenet|deeplab|fcn_|fasterrcnn|maskrcnn|retinanet)"
)
CONVOLUTION = "torch.nn.Conv2d"
FEW = 3

rule = Rule(
    code="TL403",
    name="not-channels-last",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="convolutions under autocast in the default memory format",
    triggers=Triggers.all_of("autocast", "backward", ("Conv2d", "models"), ("cuda", "to")),
    examples=(
        Example(
            bad="""
import torch
from torchvision import models

model = models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
    ),
    references=("https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",),
    documentation=__doc__,
    silences={
        "format": "Something in the file speaks of a memory format.",
        "no-convolutions": "The file makes no network of two-dimensional convolutions itself.",
        "no-gpu": "Nothing is moved to CUDA for certain, or autocast is that of the CPU.",
        "no-training": "The file does not make the optimizer and train, or no backward pass follows.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.With)
def check(node: cst.With, model: Model) -> Iterator[Finding]:
    """Report the first autocast block of a program that trains convolutions in the default format."""
    entered = _entered(node, model)
    if entered is None or entered.device == "cpu" or rule.silent("test", model.in_test(node)):
        return
    if _speaks_of_format(model) or not _convolves(model) or not trains_on_cuda(model) or not _trains(model):
        return
    if next((other for other in model.nodes(cst.With) if _entered(other, model) is not None), None) is not node:
        return
    yield Finding(
        entered.call,
        "The convolutions run under autocast with tensors in the default memory format: tensor cores want channels "
        "last. Try `model.to(memory_format=torch.channels_last)` and the same for the images, and measure it.",
    )


def _entered(node: cst.With, model: Model) -> Autocast | None:
    """Return the autocast that a statement enters, unless it switches it off."""
    found = (entered for item in node.items for entered in model.precision.entered(item.item))
    return next((entered for entered in found if entered.enabled is not False), None)


def _speaks_of_format(model: Model) -> bool:
    names = (node for kind in (cst.Name, cst.Attribute) for node in model.nodes(kind))
    texts = (text.raw_value.replace("-", "_") for text in model.nodes(cst.SimpleString) if len(text.raw_value) < 40)
    return any(FORMAT.search(identifier(name)) for name in names) or any(map(FORMAT.search, texts))


def _convolves(model: Model) -> bool:
    """Whether the file takes a convolutional network of torchvision, or makes one of its own."""
    names = [model.qualified_name(call.func) or "" for call in model.nodes(cst.Call)]
    return names.count(CONVOLUTION) >= FEW or any(map(NETWORKS.match, names))


def _trains(model: Model) -> bool:
    """Whether the file makes the optimizer, updates by it, and runs backward passes."""
    makes = any(model.value(call).kind is Kind.OPTIMIZER for call in model.nodes(cst.Call))
    return makes and model.training_code.updates() and bool(model.backward.passes())
