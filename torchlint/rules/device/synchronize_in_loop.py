"""The device is synchronised on every step.

## Why it costs

`torch.cuda.synchronize()` makes the host wait until all queued kernels have run. On every step it takes away the
overlap of Python and the GPU: the GPU idles while Python queues the next step.

## What to write instead

Nothing: PyTorch synchronises by itself where a value is needed on the host. The fix removes the call, with the
condition and the comment that are there for its sake. It is unsafe in that times taken on the host after it then
measure the queueing only: time with `torch.cuda.Event(enable_timing=True)`. There is no fix where the file pins memory
by hand or copies to the host without waiting, for which the call may be there.

## When to ignore it

The call stands around an explicit measurement of time.

Holds for all supported versions of torch; read in the tuning guide and in the documentation of torch 2.13.
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
from torchlint.semantics.values import Device
from torchlint.syntax.calls import literal, method_call

_SYNCHRONISES = frozenset(
    ("torch.cuda.synchronize", "torch.mps.synchronize", "torch.xpu.synchronize", "torch.accelerator.synchronize")
)
_OTHER_STREAMS = frozenset(("torch.cuda.Stream", "torch.cuda.stream"))
_STREAMS = frozenset(("torch.cuda.current_stream", "torch.cuda.default_stream"))
# What a comment says that is about the call, and goes with it.
_ABOUT = re.compile(
    r"synchroni[sz]|\b(block|finish|complet|done|wait|flush)\w*\b.*\b(cuda|gpus?|kernels?|devices?)\b", re.IGNORECASE
)

rule = Rule(
    code="TL206",
    name="synchronize-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`torch.cuda.synchronize()` on every step",
    triggers=Triggers.all_of("synchronize"),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        torch.square(model(x.cuda(non_blocking=True))).sum().backward()
        optimizer.step()
        torch.cuda.synchronize()
""",
            good="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        torch.square(model(x.cuda(non_blocking=True))).sum().backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The call does not run on every step.",
        "guarded": "A periodic test or a flag that is off by default stands around it.",
        "update": "An optimizer may wait for copies to the host, on which it computes.",
        "copied": "A copy to the host that does not wait, or another stream, is at work in the function around it.",
        "timed": "A clock is read around it: the measurement is what it is for.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=("synchronize", *_SYNCHRONISES))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a synchronisation in a hot place."""
    heat = _heat(call, model)
    if heat is None:
        return
    yield Finding(
        call,
        f"`{model.code(call)}` {heat.often} makes the host wait for all queued kernels, so Python "
        "and the GPU no longer overlap. Remove it: PyTorch waits by itself where a value is needed on the host.",
        _fix(call, model),
    )


def _heat(call: cst.Call, model: Model) -> Heat | None:
    """How often a call waits for the device, None where that is rare, meant or none."""
    heat = model.heat(call) if _synchronises(call, model) else None
    if heat is None or rule.silent("timed", model.conditions.is_timed(call)):
        return None
    if rule.silent("update", heat.role is Role.UPDATE) or rule.silent("copied", _is_needed(call, model)):
        return None
    return heat


def _is_needed(call: cst.Call, model: Model) -> bool:
    """Whether the function around a call, or the program, copies without waiting or computes on another stream."""
    frame = model.enclosing_function(call)
    nodes = model.descendants(frame.body) if frame is not None else iter(model.nodes(cst.Call))
    calls = [node for node in nodes if isinstance(node, cst.Call)]
    if any(model.qualified_name(other.func) in _OTHER_STREAMS for other in calls):
        return True
    return any(_does_not_wait(other, model) for other in calls)


def _does_not_wait(call: cst.Call, model: Model) -> bool:
    """Whether a call copies into memory of the host, or into some that is there, with `non_blocking=True`."""
    named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    if literal(named.get("non_blocking")) is not True:
        return False
    move = model.moves.move(call)
    return method_call(call, "copy_") is not None or (move is not None and move.place is Device.CPU)


def _synchronises(call: cst.Call, model: Model) -> bool:
    """Whether a call waits for the device: by its function, or as a method of the stream in use."""
    if model.qualified_name(call.func) in _SYNCHRONISES:
        return True
    method = method_call(call, "synchronize")
    stream = method.value if method is not None else None
    return isinstance(stream, cst.Call) and model.qualified_name(stream.func) in _STREAMS


def _goes_too(other: cst.Call, call: cst.Call, model: Model) -> bool:
    """Whether another call is reported as well, or does the same on another kind of device."""
    return _heat(other, model) is not None or (_synchronises(other, model) and are_branches(call, other, model))


def _fills_pinned(model: Model) -> bool:
    """Whether the file pins memory by hand, which may be filled again, or copies to the host without waiting."""
    calls = model.nodes(cst.Call)
    return any(method_call(each, "pin_memory") is not None or _does_not_wait(each, model) for each in calls)


def _fix(call: cst.Call, model: Model) -> Fix | None:
    statement = model.parent(call)
    if not isinstance(statement, cst.Expr) or _fills_pinned(model):
        return None
    removed = whole(statement, lambda other: _goes_too(other, call, model), _ABOUT, model)
    return Fix(
        "Remove the synchronisation",
        (RemoveStatement(removed, _ABOUT),),
        Safety.UNSAFE,
        "Times taken on the host after it no longer include the kernels, nor is waited for those of other streams or "
        "for copies out of pinned memory.",
        Evidence.PROVEN,
    )
