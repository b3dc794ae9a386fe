"""An optimizer is made before its model gets other parameters, or before they move away from what it holds.

Moving a model by `.cuda()` or `.to(device)` keeps its parameters: an optimizer that was made before goes on working.
The rule reports the four cases in which it does not:

- `fully_shard(model)`, and `FullyShardedDataParallel(model)` without `use_orig_params=True`, after the optimizer;
- `model.to_empty(device=...)` after the optimizer;
- `torch.optim.Adagrad`, which makes its sums at once, on the device that the parameters have then;
- `optimizer.load_state_dict(...)` before the move, which puts the state where the parameters are then.

## Why it costs

In the first two the optimizer holds parameters that the model does not have any more: the loss is computed, `step()`
raises nothing, and nothing is trained. In the last two `step()` raises, since the state is in host memory and the
gradients on the GPU.

## What to write instead

```python
model = Net().to(device)  # or fully_shard(model), FullyShardedDataParallel(model), model.to_empty(device=device)
optimizer = torch.optim.AdamW(model.parameters())
optimizer.load_state_dict(checkpoint["optimizer"])
```

## When to ignore it

Where `optimizer.param_groups` is given the new parameters; the rule is silent where the function speaks of it.

Holds for all supported versions of torch (`fully_shard` since 2.4). Read in the documentation of
`FullyShardedDataParallel`, `fully_shard` and `torch.nn.Module.to_empty` of torch 2.13, and tried with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import OPTIMIZERS
from torchlint.semantics.training.optimizers import (
    assigned_to,
    calls_after,
    is_made_on_host,
    is_same_object,
    optimized_module,
)
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.canonical import is_same

WRAPPER = "torch.distributed.fsdp.FullyShardedDataParallel"
SHARDING = (WRAPPER, "torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
LOST = "so that `step()` moves what the model does not have any more: nothing is trained, and nothing says so"
APART = "so that `step()` raises once the gradients are on the device"

rule = Rule(
    code="TL313",
    name="optimizer-before-move",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="an optimizer is made before its model is sharded, emptied or moved away from its state",
    triggers=Triggers.all_of(
        "parameters", ("optim", "torch"), ("fully_shard", "FullyShardedDataParallel", "FSDP", "to", "cuda", "to_empty")
    ),
    examples=(
        Example(
            bad="""
import torch
from torch.distributed.fsdp import fully_shard

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
fully_shard(model)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/fsdp.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to_empty",
    ),
    documentation=__doc__,
    silences={
        "keeps": "The move keeps the parameters, and the optimizer has no state yet.",
        "orig-params": "`FullyShardedDataParallel` keeps the parameters: `use_orig_params` is given, and not `False`.",
        "after": "The optimizer is made after that.",
        "regrouped": "The function gives the optimizer other parameters or state, or makes it anew.",
        "placed": "The model may have been on the device before: it is moved or made there, or comes from elsewhere.",
        "other": "What is moved is another model, or the variable holds another one by then.",
        "branch": "The move stands in another branch than the optimizer.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=OPTIMIZERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an optimizer whose model is changed after it was made."""
    if model.qualified_name(call.func) not in OPTIMIZERS:
        return
    module = optimized_module(call, model)
    if module is None or model.value(call).kind is not Kind.OPTIMIZER:
        return
    for later in calls_after(call, model):
        why = _breaks(later, module, call, model)
        if why is None or rule.silent("other", not is_same_object(module, later, model)):
            continue
        if rule.silent("branch", model.flow.exclusive(call, later)):
            continue
        if not rule.silent("regrouped", _is_regrouped(call, model)) and not rule.silent("test", model.in_test(call)):
            shown = model.shown(later, "what follows")
            yield Finding(call, f"{shown} comes after this optimizer, {why}. Make the optimizer after it.")
        return


def _is_regrouped(optimizer: cst.Call, model: Model) -> bool:
    """Whether the function gives an optimizer other parameters or state, or makes one anew."""
    function = model.enclosing_function(optimizer)
    spoken = (a for a in model.nodes(cst.Attribute) if a.attr.value in ("param_groups", "add_param_group"))
    made = (call for call in calls_after(optimizer, model) if model.value(call).kind is Kind.OPTIMIZER)
    target = assigned_to(optimizer, model)
    anew = target is not None and any(
        (other := assigned_to(call, model)) is not None and is_same(other, target) for call in made
    )
    by_hand = (a for a in model.nodes(cst.Attribute) if target and a.attr.value == "state" and is_same(a.value, target))
    return anew or any(model.enclosing_function(a) is function for a in (*spoken, *by_hand))


def _breaks(call: cst.Call, module: cst.BaseExpression, optimizer: cst.Call, model: Model) -> str | None:
    """Return what is wrong with an optimizer for a module after a call, None if that leaves it as it is."""
    method = method_call(call, "to_empty", "to", "cuda")
    if method is not None and model.qualified_name(method) is None:
        if not is_same(method.value, module):
            return None
        if method.attr.value == "to_empty":
            return f"and gives `{model.code(module)}` new parameters, {LOST}"
        return _leaves_state(call, module, optimizer, model)
    name = model.callee(call)
    given = model.arguments(call, ("module",))
    wrapped = given.get("module")
    if name not in SHARDING or wrapped is None or not is_same(wrapped, module) or given.open_keywords:
        return None
    keeps = given.get("use_orig_params")
    if name == WRAPPER and rule.silent("orig-params", keeps is not None and literal(keeps) is not False):
        return None
    return f"and gives `{model.code(module)}` new parameters, {LOST}"


def _leaves_state(move: cst.Call, module: cst.BaseExpression, optimizer: cst.Call, model: Model) -> str | None:
    """Return what is wrong where a module is moved away from the state that its optimizer has by then."""
    found = model.move(move)
    if found is None or found.place not in (Device.ACCELERATOR, Device.EITHER):
        return None
    if rule.silent("placed", not is_made_on_host(module, model)):
        return None
    if model.callee(optimizer) == "torch.optim.Adagrad":
        return f"which made its sums in host memory, {APART}"
    if rule.silent("keeps", not _has_state(optimizer, move, module, model)):
        return None
    return f"whose state was loaded to host memory before it, {APART}"


def _has_state(optimizer: cst.Call, move: cst.Call, module: cst.BaseExpression, model: Model) -> bool:
    """Whether the state of an optimizer is loaded before a move, and before any other move of its module."""
    calls = [call for call in calls_after(optimizer, model) if model.order(call) <= model.order(move)]
    moves = (call for call in calls if (moved := method_call(call, "to", "cuda")) and is_same(moved.value, module))
    first = min(model.order(call) for call in moves)
    loads = (call for call in calls if model.order(call) < first and _loads_state(call, optimizer, model))
    return any(not model.flow.exclusive(call, move) for call in loads)


def _loads_state(call: cst.Call, optimizer: cst.Call, model: Model) -> bool:
    """Whether a call loads the state of the optimizer that another call makes."""
    method, target = method_call(call, "load_state_dict"), assigned_to(optimizer, model)
    return method is not None and target is not None and is_same(target, method.value)
