"""A transformer is trained on CUDA in full float32 precision: the matrix units of the GPU stay unused.

The file builds attention layers or loads a model of transformers, moves it to CUDA, trains it by an optimizer of its
own, and says nothing about precision: no autocast, no half types, no TensorFloat-32.

## Why it costs

Since torch 1.12 a product of float32 matrices is computed in full float32 unless the program says otherwise. From
Ampere on (A100, RTX 30) the tensor cores multiply float32 matrices as TensorFloat-32, which keeps the range and rounds
the inputs to 10 bits of mantissa: on an A100 with up to 156 instead of 19.5 TFLOP/s. Convolutions and recurrent layers
of cuDNN use it by default; `nn.Linear` and attention do not.

## What to write instead

```python
torch.set_float32_matmul_precision("high")
```

at the start of the program; from torch 2.9 on `torch.backends.cuda.matmul.fp32_precision = "tf32"` says the same by the
new settings. Use one of them: torch refuses programs that read one after they have set the other. Autocast to bfloat16
is faster still, and halves the memory of activations.

## When to ignore it

On GPUs before Ampere, which have nothing to gain, and where the mantissa matters: second derivatives, solvers,
comparisons with results in full precision. The values change in the third or fourth digit, so that there is no fix.

Holds for torch 1.12 and newer; before, TensorFloat-32 was the default. Read in "TensorFloat-32 (TF32) on Ampere (and
later) devices" of the CUDA notes and in the documentation of `torch.set_float32_matmul_precision` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import OPTIMIZERS
from torchlint.semantics.training.full_precision import decides_precision, is_first_optimizer, trains_on_cuda

LAYERS = (
    *("MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer"),
    *("TransformerDecoderLayer", "scaled_dot_product_attention"),
)
PRETRAINED = "from_pretrained"
SINCE = (1, 12)
NEW_SETTINGS = (2, 9)

rule = Rule(
    code="TL607",
    name="tf32-not-enabled",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a transformer is trained in full float32 precision",
    triggers=Triggers.all_of((*LAYERS, PRETRAINED), "backward", "step", ("cuda", "to")),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

model = nn.TransformerEncoderLayer(512, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x in loader:
    model(x.cuda()).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices",
    ),
    documentation=__doc__,
    silences={
        "precision": "The file speaks of precision, of half types, or of a framework that decides about them.",
        "no-attention": "The file has no attention layers and no model of transformers: there is less to gain.",
        "no-gpu": "Nothing is moved to CUDA for certain, or only where there is one of several kinds.",
        "no-training": "The file does not make the optimizer, or does not train.",
        "old": "The project supports versions of torch in which it was the default.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call, called=OPTIMIZERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the optimizer of a program in full precision, once for a file."""
    if model.qualified_name(call.func) not in OPTIMIZERS:
        return
    if (
        model.target.lacks(SINCE)
        or rule.silent("test", model.in_test(call))
        or not is_first_optimizer(call, model)
        or decides_precision(model)
    ):
        return
    if not _has_attention(model) or not trains_on_cuda(model) or not _updates(model):
        return
    newest = model.target.known and model.target.version >= NEW_SETTINGS
    setting = 'backends.cuda.matmul.fp32_precision = "tf32"' if newest else 'set_float32_matmul_precision("high")'
    yield Finding(
        call,
        "The model is trained in full float32 precision, for which the tensor cores of the GPU are not used. Write "
        f"`torch.{setting}` at the start, or train under autocast to bfloat16, unless all bits matter.",
    )


def _updates(model: Model) -> bool:
    """Whether the file makes the steps of a training itself, with the gradients of a backward pass."""
    return model.speaks_of("backward") and model.training_code.updates()


def _has_attention(model: Model) -> bool:
    """Whether the file makes attention layers of torch, or loads a model of transformers."""
    for call in model.nodes(cst.Call):
        name = model.qualified_name(call.func) or ""
        package, _, last = name.rpartition(".")
        if last in LAYERS and package in ("torch.nn", "torch.nn.functional"):
            return True
        if last == PRETRAINED and package.startswith("transformers.") and "Model" in package:
            return True
    return False
