"""Models on the GPU are trained by several processes that talk through Gloo.

`init_process_group("gloo")` in a program that moves its model to CUDA, wraps it by `DistributedDataParallel` or
`FullyShardedDataParallel`, and trains it.

## Why it costs

Gloo works on the host: in every step the gradients of all parameters are copied to host memory, summed there over the
network by threads of the CPU, and copied back. NCCL sums them on the GPUs, which talk to each other directly over
NVLink, PCIe or InfiniBand. PyTorch recommends NCCL for training on GPUs, and Gloo for training on CPUs.

## What to write instead

```python
torch.distributed.init_process_group("nccl")
```

or, for tensors of both kinds, `"cpu:gloo,cuda:nccl"`, which is what the call takes if it is given no backend (torch 2.0
and newer).

## When to ignore it

Where NCCL cannot run: on Windows, or with several processes on one GPU, which NCCL refuses.

Holds for all supported versions of torch. Read in "Which backend to use?" on the page of `torch.distributed` of torch
2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.values import Device
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.statements import is_main_guard

START = "torch.distributed.init_process_group"
WRAPPERS = frozenset(
    ("torch.nn.parallel.DistributedDataParallel", "torch.distributed.fsdp.FullyShardedDataParallel")
) | {"torch.distributed.fsdp.fully_shard"}
MIXED = ("new_group", "init_rpc", "rpc", "subgroup", "get_default_backend_for_device", "init_device_mesh")
WINDOWS = ("platform", "win32", "WINDOWS", "IS_WINDOWS")
SEVERAL = re.compile(r"(^|_)(distributed|ddp|dist|world_size|parallel|multi_?gpu|ngpus?)(_|$)", re.IGNORECASE)

rule = Rule(
    code="TL707",
    name="gloo-with-cuda",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="gradients on GPUs are summed on the host by Gloo",
    triggers=Triggers.all_of(
        "init_process_group",
        ("gloo", "Backend", "GLOO"),
        tuple(sorted(name.rpartition(".")[2] for name in WRAPPERS)),
        ("cuda", "to"),
    ),
    examples=(
        Example(
            bad="""
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(model.cuda())
model(x).sum().backward()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use",),
    documentation=__doc__,
    silences={
        "backend": "The backend is another one, or a variable or condition decides.",
        "nccl": "The file speaks of NCCL too: it knows when to use it.",
        "several-groups": "The file makes further groups, or calls procedures of other processes.",
        "windows": "The file speaks of Windows, or of platforms.",
        "no-gpu": "Nothing in the file is moved to a GPU, or no model is wrapped and trained.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the start of a group that sums gradients of GPUs through Gloo."""
    if model.callee(call) != START:
        return
    backend = model.arguments(call, ("backend",)).get("backend")
    if rule.silent("backend", not _is_gloo(backend, model) or _is_conditional(call, model)):
        return
    if _knows_others(model) or not _trains_on_gpus(model) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        "Gloo copies the gradients of every step to the host and sums them there, while the GPUs wait. Use NCCL, which "
        'sums them on the GPUs: `init_process_group("nccl")`, or `"cpu:gloo,cuda:nccl"` for tensors of both kinds.',
    )


def _is_gloo(backend: cst.BaseExpression | None, model: Model) -> bool:
    if backend is None:
        return False
    return literal(backend) == "gloo" or model.qualified_name(backend) == "torch.distributed.Backend.GLOO"


def _is_conditional(call: cst.Call, model: Model) -> bool:
    """Whether a call depends on anything but whether the file is run, and by several processes."""
    child: cst.CSTNode = call
    for ancestor in model.ancestors(call):
        if isinstance(ancestor, (cst.IfExp, cst.ExceptHandler, cst.MatchCase, cst.Try)):
            return True
        plain = child is getattr(ancestor, "body", None)
        if isinstance(ancestor, cst.If) and not (plain and (is_main_guard(ancestor) or _asks_for_several(ancestor))):
            return True
        child = ancestor
    return False


def _asks_for_several(branch: cst.If) -> bool:
    asked = branch.test.left if isinstance(branch.test, cst.Comparison) else branch.test
    return bool(SEVERAL.search(identifier(asked)))


def _knows_others(model: Model) -> bool:
    """Whether the file speaks of NCCL, of further groups, or of systems on which there is nothing but Gloo."""
    names = (*MIXED, *WINDOWS)
    if model.speaks_of(*names) or model.names_any_of(*names):
        return True
    return any(word in text.raw_value.lower() for text in model.nodes(cst.SimpleString) for word in ("nccl", "windows"))


def _trains_on_gpus(model: Model) -> bool:
    if model.moves.destination not in (Device.ACCELERATOR, Device.EITHER) or not model.training_code.anywhere():
        return False
    return any(model.callee(call) in WRAPPERS for call in model.nodes(cst.Call))
