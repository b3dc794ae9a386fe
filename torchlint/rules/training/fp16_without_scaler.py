"""A model is trained in float16 by `autocast`, and the loss is not scaled.

The forward pass runs under `torch.autocast("cuda")`, whose type is float16 unless another one is asked for, and
`backward()` starts from the plain loss.

## Why it costs

An operation with float16 inputs gives float16 gradients. What is smaller than about 6e-8 becomes zero there, and
gradients often are: the parameters behind such an operation are then trained by a part of their gradient, or not at
all, and nothing says so. `GradScaler` multiplies the loss, so that gradients stay in the range of float16, divides them
before the step, and skips steps whose gradients overflow.

## What to write instead

```python
scaler = torch.amp.GradScaler("cuda")  # torch.cuda.amp.GradScaler() before torch 2.3
...
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

or, on GPUs that have it (Ampere and newer), `torch.autocast("cuda", dtype=torch.bfloat16)`, whose range is that of
float32 and needs no scaler.

## When to ignore it

Where the gradients are known to be large enough, or the loss is scaled in another file.

Holds for all supported versions of torch (`dtype=` of `torch.cuda.amp.autocast` since 1.10). Read in "Gradient
Scaling" on the page of `torch.amp` and in the documentation of `torch.autocast` of torch 2.13, which gives float16 as
the default on CUDA and bfloat16 on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.model import Model
from torchlint.semantics.training.precision import Autocast
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

SCALER = re.compile("scaler|loss_?scale|scaled?_?loss", re.IGNORECASE)
CHOOSE_TYPE = ("set_autocast_dtype", "set_autocast_gpu_dtype")

rule = Rule(
    code="TL311",
    name="fp16-without-scaler",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="training in float16 without a gradient scaler",
    triggers=Triggers.all_of("autocast", "backward", "step"),
    examples=(
        Example(
            bad="""
import torch

model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.ones(8, 1, 2, device="cuda"):
    with torch.autocast("cuda"):
        loss = model(x).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
        "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#typical-mixed-precision-training",
    ),
    documentation=__doc__,
    silences={
        "type": "The type is bfloat16, or it or the device is chosen at run time.",
        "off": "Autocast is switched off in the block.",
        "scaler": "The file speaks of a scaler, or scales the loss by hand.",
        "framework": "The loss is given to a framework, which scales it: `accelerator.backward(loss)`.",
        "no-update": "No optimizer steps in the file, or the loss is computed outside the block.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.With)
def check(node: cst.With, model: Model) -> Iterator[Finding]:
    """Report an autocast block in float16 whose loss is backpropagated as it is."""
    entered = next((found for item in node.items for found in model.precision.entered(item.item)), None)
    if entered is None or rule.silent("off", entered.enabled is False):
        return
    if rule.silent("type", not _is_half(entered, model)):
        return
    backward = next((call for call in model.nodes(cst.Call) if _starts_in(call, node, model)), None)
    if backward is None or rule.silent("scaler", _scales(backward, model)):
        return
    if not model.training_code.updates() or rule.silent("test", model.in_test(node)):
        return
    yield Finding(
        entered.call,
        f"`{model.code(entered.call.func)}` computes in float16, and {model.shown(backward, 'the backward pass')} "
        "starts from a loss that is not scaled: small gradients become zero. Use a `GradScaler`, or "
        "`dtype=torch.bfloat16` where the GPU has it.",
    )


def _is_half(entered: Autocast, model: Model) -> bool:
    """Whether the type is float16: by name, or as the default on CUDA that the file leaves alone."""
    if entered.dtype == "torch.float16":
        return entered.device != "cpu"
    return entered.dtype == "" and entered.device == "cuda" and not model.speaks_of(*CHOOSE_TYPE)


def _starts_in(call: cst.Call, block: cst.With, model: Model) -> bool:
    """Whether a call is the backward pass of a loss that is computed in a block."""
    method = method_call(call, "backward")
    if method is None or any(argument.keyword is None for argument in call.args):
        return False
    if isinstance(method.value, cst.Name):
        return _is_computed_in(method.value, block, model)
    if not isinstance(method.value, cst.Attribute):
        return False
    same = model.enclosing_function(call) is model.enclosing_function(block)
    assigned = (t.target for t in model.nodes(cst.AssignTarget) if model.within(t, block.body))
    return same and any(is_same(target, method.value) for target in assigned)


def _is_computed_in(loss: cst.Name, block: cst.With, model: Model) -> bool:
    """Whether a block computes a loss, which may be divided after it."""
    for binding in model.reaching(loss):
        if model.within(binding.node, block.body):
            return True
        before: cst.CSTNode | None = binding.node if binding.kind is BindingKind.AUGMENTED else None
        if isinstance(binding.value, cst.BinaryOperation) and isinstance(binding.value.operator, cst.Divide):
            before = binding.value.left
        if isinstance(before, cst.Name) and before is not loss and _is_computed_in(before, block, model):
            return True
    return False


def _scales(backward: cst.Call, model: Model) -> bool:
    """Whether the file has a scaler, or the function multiplies the loss."""
    if any(_is_scaler(node) for kind in (cst.Name, cst.Attribute, cst.Arg) for node in model.nodes(kind)):
        return True
    loss, function = method_call(backward, "backward"), model.enclosing_function(backward)
    return loss is not None and any(
        isinstance(node.operator, cst.MultiplyAssign)
        and is_same(node.target, loss.value)
        and model.enclosing_function(node) is function
        for node in model.nodes(cst.AugAssign)
    )


def _is_scaler(node: cst.CSTNode) -> bool:
    name = node.keyword if isinstance(node, cst.Arg) else node
    return name is not None and bool(SCALER.search(identifier(name)))
