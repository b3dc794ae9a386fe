"""A program that only infers runs its model under `no_grad`, where `inference_mode` does less.

The file loads or makes a model and runs it, is meant to be run by itself, and computes no gradients anywhere.

## Why it costs

Under `torch.no_grad()` no graph is recorded, but each tensor still counts its changes and knows what it is a view of,
in case it is used in a graph later. `torch.inference_mode()` leaves that out. What it saves is time on the host for
each operation: on the CPU of a virtual machine 2 % for small linear layers, 12 % for a small transformer layer and 25 %
for chains of views (torch 2.13). It does not show where the GPU is busy anyway.

## What to write instead

```python
with torch.inference_mode():
    output = model(x)
```

The fix writes that. It is unsafe: tensors made in this mode must not be saved for a backward pass, and not be changed
in place outside of it; both raise.

## When to ignore it

Where results go into training elsewhere, or the model keeps tensors (caches) that are used outside.

`torch.inference_mode` exists since torch 1.9. Read in "Inference Mode" of the notes on autograd mechanics of torch
2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Edit, Replace
from torchlint.edits.renaming import from_root
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.autograd.escapes import changes_outside, runs_outside
from torchlint.semantics.binding.scopes import FUNCTIONS
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier

NO_GRAD = "torch.no_grad"
SINCE = (1, 9)
READY = ("load", "load_state_dict", "eval", "from_pretrained")
STARTING = frozenset(("load_state_dict", "from_pretrained", "parse_args"))
GRADIENTS = (
    *("requires_grad_", "requires_grad", "grad", "backward", "zero_grad", "enable_grad", "set_grad_enabled", "optim"),
    "_version",
)
COMPILERS = (
    "torch.jit.",
    "torch.onnx.",
    "torch.export.",
    "torch.compile",
    "torch.quantization.",
    "torch.ao.",
    "torch.fx.",
)
WHY = "What is made in this mode must not be changed in place outside of it, nor saved for a backward pass."

rule = Rule(
    code="TL502",
    name="no-grad-not-inference-mode",
    family=Family.INFERENCE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a program that only infers uses `no_grad` instead of `inference_mode`",
    triggers=Triggers.all_of("no_grad", READY),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
model.load_state_dict(torch.load("weights.pt", weights_only=True))
if __name__ == "__main__":
    with torch.no_grad():
        print(model(torch.ones(1, 8)))
""",
            good="""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
model.load_state_dict(torch.load("weights.pt", weights_only=True))
if __name__ == "__main__":
    with torch.inference_mode():
        print(model(torch.ones(1, 8)))
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode",),
    documentation=__doc__,
    silences={
        "trains": "The file computes gradients, makes an optimizer, or asks for gradients.",
        "library": "The file is no program, or the block a part of a module: others import it, and may train.",
        "changed": "A result is changed in place outside of the block, or a model runs there with gradients.",
        "no-model": "The block runs no model: it changes weights, averages, or computes by hand.",
        "traced": "The model is traced, exported, compiled or quantised.",
        "old": "The project supports versions of torch without `inference_mode`.",
        "generator": "The function is a generator or coroutine.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=(NO_GRAD,))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report ``no_grad()`` around a model in a program that only infers."""
    if model.qualified_name(call.func) != NO_GRAD or call.args or model.target.lacks(SINCE):
        return
    block = _block(call, model)
    if block is None or model.in_test(call) or not _is_program(model) or _trains(model) or not _is_ready(model):
        return
    if rule.silent("library", _is_of_module(block, model)):
        return
    if rule.silent("no-model", not _runs_model(block, model)) or rule.silent("generator", _is_generator(block, model)):
        return
    if _traces(model) or changes_outside(block, model) or runs_outside(block, model):
        return
    yield Finding(
        call,
        f"Nothing in this program needs a graph: `{model.code(call.func)}` still counts the changes of each tensor and "
        "tracks views. Write `torch.inference_mode()`, which leaves that out.",
        _fix(call, model),
    )


def _fix(call: cst.Call, model: Model) -> Fix | None:
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    written = from_root(call.func, "torch.inference_mode", model)
    if written is None:
        return None
    edits: tuple[Edit, ...] = (Replace(call.func, written.code), *written.imports)
    return Fix("Write `inference_mode`", edits, Safety.UNSAFE, WHY, Evidence.INFERRED)


def _block(call: cst.Call, model: Model) -> cst.With | cst.FunctionDef | None:
    """Return the block that a context is for: that of a ``with`` statement, or a function that it decorates."""
    parent = model.parent(call)
    if isinstance(parent, cst.WithItem):
        return model.enclosing(call, cst.With)
    function = model.parent(parent) if isinstance(parent, cst.Decorator) else None
    return function if isinstance(function, cst.FunctionDef) else None


def _is_of_module(block: cst.With | cst.FunctionDef, model: Model) -> bool:
    """Whether a block belongs to a method of a module."""
    function = block if isinstance(block, cst.FunctionDef) else model.enclosing_function(block)
    owner = model.definitions.owner(function) if function is not None else None
    return owner is not None and model.definitions.class_kind(owner) is Kind.MODULE


def _is_program(model: Model) -> bool:
    """Whether a file is meant to be run: behind a test of ``__name__``, or with a model at its top level."""
    if model.is_program:
        return True
    calls = model.calls_by_name.named(STARTING)
    starts = (call for call in calls if identifier(call.func) in STARTING)
    return any(model.enclosing(call, *FUNCTIONS, cst.ClassDef) is None for call in starts)


def _is_ready(model: Model) -> bool:
    """Whether something says that the model has been trained before."""
    return model.speaks_of(*READY) or model.names_any_of(*READY)


def _trains(model: Model) -> bool:
    if model.training_code.anywhere() or model.speaks_of(*GRADIENTS) or model.names_any_of(*GRADIENTS):
        return True
    return any(model.value(call).kind is Kind.OPTIMIZER for call in model.nodes(cst.Call))


def _runs_model(block: cst.With | cst.FunctionDef, model: Model) -> bool:
    calls = (node for node in model.descendants(block.body) if isinstance(node, cst.Call))
    values = (model.value(call.func) for call in calls if isinstance(call.func, (cst.Name, cst.Attribute)))
    return any(value.kind is Kind.MODULE and value.evidence >= Evidence.INFERRED for value in values)


def _traces(model: Model) -> bool:
    return any((model.qualified_name(call.func) or "").startswith(COMPILERS) for call in model.nodes(cst.Call))


def _is_generator(block: cst.With | cst.FunctionDef, model: Model) -> bool:
    function = block if isinstance(block, cst.FunctionDef) else None
    yields = any(isinstance(node, cst.Yield) for node in model.descendants(block.body))
    return yields or (function is not None and function.asynchronous is not None)
