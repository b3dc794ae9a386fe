"""The memory cache is emptied on every step.

## Why it costs

`torch.cuda.empty_cache()` returns cached blocks to the driver: it waits for the device, and the next step pays for
`cudaMalloc` again, which synchronises too. `gc.collect()` walks all Python objects. Neither frees memory that is in
use.

## What to write instead

Nothing in the step. Against fragmentation set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (torch 2.1 and
newer); call `empty_cache()` once where the workload changes, such as between training and evaluation. The fix removes
the call, with the condition and the comment that are there for its sake. It is unsafe in that the peak of reserved
memory can rise.

## When to ignore it

Another process shares the GPU and needs the memory between the steps.

Holds for all supported versions of torch; read in the notes on memory management of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.edits.leftovers import are_branches, whole
from torchlint.edits.operations import RemoveStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.syntax.calls import method_call

_DEVICES = frozenset(("deepspeed.accelerator.get_accelerator", "deepspeed.get_accelerator"))
"""What gives the device in use, whose methods are those of ``torch.cuda``."""
_EMPTIES = frozenset(("torch.cuda.empty_cache", "torch.mps.empty_cache", "torch.xpu.empty_cache"))
_COLLECTS = "gc.collect"
_BY_HAND = frozenset(("gc.disable", "gc.freeze"))
_SETTING = re.compile(r"empty|clear|flush|free|mem|vram|gc|collect|offload|cleanup", re.IGNORECASE)
# What a comment says that is about the call, and goes with it.
_ABOUT = re.compile(r"\bcache|_cache|\bv?ram\b|\bmemory\b|\bgc\b|garbage|\boom\b", re.IGNORECASE)

rule = Rule(
    code="TL207",
    name="empty-cache-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="`torch.cuda.empty_cache()` or `gc.collect()` on every step",
    triggers=Triggers.all_of(("empty_cache", "collect")),
    examples=(
        Example(
            bad="""
import torch

def validate(model, loader):
    with torch.no_grad():
        for x in loader:
            model(x.cuda(non_blocking=True))
            torch.cuda.empty_cache()
""",
            good="""
import torch

def validate(model, loader):
    with torch.no_grad():
        for x in loader:
            model(x.cuda(non_blocking=True))
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
        "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The call does not run on every step: once per epoch, model or retry, in a clean-up.",
        "guarded": "A periodic test, a flag that is off by default, or an exception handler stands around it.",
        "asked-for": "A setting asks for it by name: `if args.empty_cache`, `if self.save_memory`.",
        "by-hand": "`gc.collect()` in a file that switches the collector off, freezes what it knows, or notes what is "
        "collected (`weakref`, `__del__`).",
        "no-accelerator": "`gc.collect()` in a file that does not compute on an accelerator.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=("empty_cache", *_EMPTIES, _COLLECTS))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report an emptied cache in a hot place."""
    heat = _heat(call, model)
    if heat is None:
        return
    costs = "gives cached memory back and makes the next pass allocate it again, which waits for the device"
    if model.qualified_name(call.func) == _COLLECTS:
        costs = "walks all Python objects while the device waits for work, and frees nothing that is in use"
    yield Finding(
        call,
        f"`{model.code(call)}` {heat.often} {costs}. Remove it, or call it once after the loop.",
        _fix(call, model),
    )


def _heat(call: cst.Call, model: Model) -> Heat | None:
    """How often a call empties a cache, None where that is rare, meant or none."""
    collects = model.qualified_name(call.func) == _COLLECTS
    heat = model.heat(call) if _empties(call, model) and not (collects and model.accelerator is None) else None
    if heat is None or heat.role is Role.DATA or (collects and heat.role is Role.FORWARD):
        return None
    asked = rule.silent("asked-for", model.conditions.is_asked_for(call, heat.root, _SETTING))
    return None if asked else heat


def _goes_too(other: cst.Call, call: cst.Call, model: Model) -> bool:
    """Whether another call is reported as well, or does the same on another kind of device."""
    return _heat(other, model) is not None or (_empties(other, model) and are_branches(call, other, model))


def _empties(call: cst.Call, model: Model) -> bool:
    name = model.qualified_name(call.func)
    if name in _EMPTIES or (name == _COLLECTS and not _collects_by_hand(model)):
        return True
    method = method_call(call, "empty_cache")
    device = method.value if method is not None else None
    return isinstance(device, cst.Call) and model.qualified_name(device.func) in _DEVICES


def _collects_by_hand(model: Model) -> bool:
    """Whether the file decides itself when garbage is collected, or notes it."""
    finalizes = any(function.name.value == "__del__" for function in model.nodes(cst.FunctionDef))
    if finalizes or model.scopes.imports("weakref"):
        return True
    return any(model.qualified_name(call.func) in _BY_HAND for call in model.nodes(cst.Call))


def _fix(call: cst.Call, model: Model) -> Fix | None:
    statement = model.parent(call)
    if not isinstance(statement, cst.Expr):
        return None
    removed = whole(statement, lambda other: _goes_too(other, call, model), _ABOUT, model)
    return Fix(
        "Remove the call",
        (RemoveStatement(removed, _ABOUT),),
        Safety.UNSAFE,
        "The peak of reserved memory can rise.",
        Evidence.PROVEN,
    )
