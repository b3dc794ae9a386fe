"""Gradients are accumulated over several backward passes, and each of them sums them over all processes.

The file speaks of `DistributedDataParallel`, its optimizer steps once for several backward passes, and nothing says
which of them need no synchronisation.

## Why it costs

`DistributedDataParallel` sums the gradients over the processes in every backward pass. Of those that accumulate only
the last needs it: the others send all gradients through the network, and wait for the slowest process, for sums that
are thrown together afterwards. With eight passes for each step, seven of eight exchanges are for nothing.

## What to write instead

```python
for i, (x, y) in enumerate(loader):
    last = (i + 1) % steps == 0
    with nullcontext() if last else model.no_sync():
        loss = criterion(model(x), y) / steps
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
```

The forward pass belongs into the block too. With `fully_shard` (FSDP2) it is `model.set_requires_gradient_sync(last)`.
Gradients of passes without synchronisation stay local until the next one with it, so that the result is the same but
for rounding.

## When to ignore it

In a single process. With `FullyShardedDataParallel` (FSDP1) `no_sync` keeps whole gradients, which may not fit.

Holds for all supported versions of torch. Read in the documentation of `DistributedDataParallel.no_sync` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.heat.guards import Guard
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call

Wanted: TypeAlias = Callable[[cst.Call, Model], bool]
NAMES = ("DistributedDataParallel", "DDP")
DECIDES = (
    *(
        "no_sync",
        "require_backward_grad_sync",
        "set_requires_gradient_sync",
        "no_backward_sync",
        "set_is_last_backward",
    ),
    *(
        "manual_backward",
        "prepare",
        "setup_module",
        "deepspeed",
        "Accelerator",
        "Fabric",
        "LightningModule",
    ),
)

rule = Rule(
    code="TL704",
    name="accumulation-without-no-sync",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.ADVICE,
    summary="accumulated gradients are summed over the processes in every backward pass",
    triggers=Triggers.all_of(NAMES, "backward", "step"),
    examples=(
        Example(
            bad="""
from torch import optim
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for i, x in enumerate(loader):
    model(x).mean().backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync",
    ),
    documentation=__doc__,
    silences={
        "decided": "The file says which passes need no synchronisation, or a framework does.",
        "every-pass": "The optimizer steps after each backward pass.",
        "several": "The passes belong to different models, as far as the file shows.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.For, cst.While)
def check(loop: cst.For | cst.While, model: Model) -> Iterator[Finding]:
    """Report a loop that computes gradients more often than it uses them."""
    # `accelerator.accumulate(model)` decides; a variable of that name is a number of passes.
    if not _knows(model) or model.speaks_of("accumulate", *DECIDES) or model.names_any_of(*DECIDES):
        return
    calls = [call for call in model.tree.below(loop.body, cst.Call) if _innermost(call, model) is loop]
    passes = [call for call in calls if _runs(call, _is_pass, model)]
    if not passes or rule.silent("every-pass", not _accumulates(loop, passes, model)):
        return
    if rule.silent("several", not _are_exclusive(passes, model)) or rule.silent("test", model.in_test(loop)):
        return
    yield Finding(
        passes[0],
        f"{model.shown(passes[0], 'This backward pass')} sums the gradients over all processes each time, though the "
        "optimizer steps once for several passes. Run all but the last of them, with their forward passes, under "
        "`model.no_sync()`.",
    )


def _knows(model: Model) -> bool:
    """Whether the file names the wrapper, if only in an import."""
    imports = (node.names for node in model.nodes(cst.ImportFrom) if not isinstance(node.names, cst.ImportStar))
    imported = any(identifier(alias.name) in NAMES for names in imports for alias in names)
    return imported or model.speaks_of(*NAMES) or model.names_any_of(*NAMES)


def _innermost(call: cst.Call, model: Model) -> cst.CSTNode | None:
    """Return the innermost loop or function around a call."""
    return model.enclosing(call, cst.For, cst.While, cst.FunctionDef, cst.Lambda)


def _accumulates(loop: cst.For | cst.While, passes: list[cst.Call], model: Model) -> bool:
    calls = list(model.tree.below(loop.body, cst.Call))
    if any(_may_update(call, model) and model.guard(call, loop) is None for call in calls):
        return False
    updates = [call for call in calls if _runs(call, _is_update, model)]
    if updates:
        every_pass = any(model.guard(each, loop) is None for each in passes)
        return every_pass and all(model.guard(update, loop) is Guard.PERIODIC for update in updates)
    outer = model.enclosing(loop, *LOOPS, cst.FunctionDef)
    if not _counts(loop, model) or not isinstance(outer, LOOPS):
        return False
    later = (call for call in model.tree.below(outer.body, cst.Call) if model.order(call) > model.order(passes[0]))
    return any(_runs(call, _is_update, model) for call in later)


def _counts(loop: cst.For | cst.While, model: Model) -> bool:
    """Whether a loop runs for a number of times, more than once."""
    made = loop.iter if isinstance(loop, cst.For) else None
    if not isinstance(made, cst.Call) or model.callee(made) != "builtins.range" or not made.args:
        return False
    return len(made.args) > 1 or literal(made.args[0].value) not in (0, 1)


def _runs(call: cst.Call, wanted: Wanted, model: Model) -> bool:
    """Whether a call is what is wanted, or runs a function of the file that does it."""
    if wanted(call, model):
        return True
    function = model.definition(call.func)
    return isinstance(function, cst.FunctionDef) and any(
        wanted(below, model) for below in model.tree.below(function.body, cst.Call)
    )


def _is_pass(call: cst.Call, model: Model) -> bool:
    method = method_call(call, "backward")
    if method is None or any(a.keyword is None for a in call.args) or model.qualified_name(call.func) is not None:
        return False
    return not any(map(_is_one_of_many, model.tree.below(method.value, cst.Subscript)))


def _is_one_of_many(subscript: cst.Subscript) -> bool:
    """Whether a variable picks something: a model or loss of several."""
    index = subscript.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Name)


def _is_update(call: cst.Call, model: Model) -> bool:
    method = method_call(call, "step")
    return method is not None and model.value(method.value).kind in (Kind.OPTIMIZER, Kind.SCALER)


def _may_update(call: cst.Call, model: Model) -> bool:
    """Whether a call steps something that may be an optimizer."""
    method = method_call(call, "step")
    return method is not None and model.value(method.value).kind in (Kind.OPTIMIZER, Kind.SCALER, Kind.UNKNOWN)


def _are_exclusive(passes: list[cst.Call], model: Model) -> bool:
    """Whether each run of a loop takes one of these passes."""
    return all(model.flow.exclusive(passes[0], other) for other in passes[1:])
