"""A tensor is copied to the host on every training step.

## Why it costs

`.cpu()`, `.numpy()`, `.tolist()` and printing a tensor wait until everything queued before has run and then copy: the GPU idles
until Python has queued new work.

## What to write instead

Keep metrics on the device and copy them once, after the loop or every few steps. Where results must be collected, collect
the detached tensors and move them together. Write `.detach().cpu()`, not `.cpu().detach()`: the latter copies with the graph.

## When to ignore it

The host needs the values in every step: the actions of an agent, results that are written out, metrics of another library.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat import Role
from torchlint.semantics.model import Model
from torchlint.semantics.values import Device

_COPIES = ("cpu", "numpy", "tolist")
_ROLES = (Role.TRAINING_LOOP, Role.STEP, Role.LOSS)

rule = Rule(
    code="TL203",
    name="host-copy-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`.cpu()`, `.numpy()`, `.tolist()` or `print(tensor)` on every training step",
    triggers=Triggers.all_of(("cpu", "numpy", "tolist", "print")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer, history):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        loss.backward()
        optimizer.step()
        history.append(loss.detach().cpu())
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The copy is not made on every training step; evaluation loops collect their results on the host.",
        "guarded": "A periodic test or a flag that is off by default stands around it.",
        "on-cpu": "The tensor is known to live on the CPU.",
        "no-tensor": "What is copied or printed is no tensor.",
        "no-accelerator": "Nothing in the file computes on an accelerator.",
        "read-as-number": "The copy is read as one number: TL202 reports that synchronisation.",
        "decision": "The value goes to an environment, which runs on the host.",
        "needs-host": "The function that takes it needs it on the host: lengths for `pack_padded_sequence`.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a copy to the host in a training step; of a chain of them the last."""
    copied = model.host_reads.copied(call)
    if copied is None:
        return
    value = model.value(copied)
    if not value.is_tensor or value.evidence < Evidence.INFERRED:
        return
    if rule.silent("no-accelerator", model.accelerator is None):
        return
    if rule.silent("on-cpu", value.device is Device.CPU):
        return
    heat = model.heat(call)
    if heat is None or heat.role not in _ROLES:
        return
    if rule.silent("read-as-number", model.host_reads.is_read_as_number(call)):
        return
    if rule.silent("decision", model.decides(call)) or rule.silent("needs-host", model.host_reads.needs_host(call)):
        return
    shown = model.code(call)
    yield Finding(
        call,
        f"`{shown if len(shown) <= 60 else model.code(copied)}` is copied to the host on every pass of this {heat.role.value}: the host "
        "waits for the GPU. Keep it on the device (`.detach()`), and copy once after the loop or every few steps.",
    )
