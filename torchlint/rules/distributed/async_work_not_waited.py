"""Communication is started, and its handle is thrown away: nobody knows when the tensor may be used.

`isend`, `irecv`, `batch_isend_irecv`, or a collective with `async_op=True`, whose result is dropped or put into a
variable that is never read.

## Why it costs

These calls return at once. Until `wait()` on what they return has come back, a tensor that is received or reduced holds
its old contents, all of the new ones or some of each, and one that is sent may still be read: writing to it sends
other numbers. Which of them happens depends on the network, so that results differ from run to run without an error.
`dist.barrier(async_op=True)` without `wait()` holds nobody up.

## What to write instead

```python
work = dist.all_reduce(total, async_op=True)
...  # what does not touch `total`
work.wait()
```

or, if there is nothing to do meanwhile, the calls that wait themselves: `dist.send`, `dist.recv`, no `async_op`.

## When to ignore it

Where something else makes sure that the work is done before its tensors are touched.

Holds for all supported versions of torch. Read in "Point-to-point communication" and "Synchronous and asynchronous
collective operations" on the page of `torch.distributed` of torch 2.13, and tried with it on Gloo: a tensor that is
read right after `irecv` holds its old values.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal, method_call

PACKAGES = ("torch.distributed.", "torch.distributed.distributed_c10d.")
STARTS = frozenset(("isend", "irecv", "batch_isend_irecv"))
COLLECTIVES = frozenset(
    (
        "all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all all_to_all_single barrier "
        "all_gather_into_tensor reduce_scatter_tensor all_reduce_coalesced all_gather_coalesced"
    ).split()
)

rule = Rule(
    code="TL706",
    name="async-work-not-waited",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="communication that nobody waits for",
    triggers=Triggers.all_of("distributed", ("isend", "irecv", "batch_isend_irecv", "async_op")),
    examples=(
        Example(bad="import torch.distributed as dist\n\ndist.all_reduce(total, async_op=True)\nprint(total)\n"),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/distributed.html#point-to-point-communication",
        "https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations",
    ),
    documentation=__doc__,
    silences={
        "kept": "The handle is read, returned, or kept in an attribute, a list or a call.",
        "synchronised": "The function waits for the whole device further on.",
        "blocking": "The call waits itself: `async_op` is not the constant True.",
        "other": "The function is none of `torch.distributed`.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that starts communication, whose result nothing uses."""
    package, _, name = (model.callee(call) or "").rpartition(".")
    if f"{package}." not in PACKAGES or (name not in STARTS and name not in COLLECTIVES):
        return
    asynchronous = name in STARTS or literal(model.arguments(call, ()).get("async_op")) is True
    if rule.silent("blocking", not asynchronous) or rule.silent("kept", not _is_dropped(call, model)):
        return
    if rule.silent("test", model.in_test(call)) or rule.silent("synchronised", _synchronises(call, model)):
        return
    yield Finding(
        call,
        f"Nothing waits for what `{model.code(call.func)}` starts: {_consequence(name)}. Keep what it returns and call "
        f"`wait()` on {'each of the handles' if name == 'batch_isend_irecv' else 'it'} first, or {_instead(name)}.",
    )


def _is_dropped(call: cst.Call, model: Model) -> bool:
    """Whether the result of a call goes nowhere, or to a variable that is never read."""
    parent = model.parent(call)
    if isinstance(parent, cst.Expr):
        return True
    target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
    if not isinstance(target, cst.Name):
        return False
    bindings = model.bindings(target)
    bound = {id(binding.node) for binding in bindings}
    return bool(bindings) and all(id(used) in bound for used in model.uses(bindings[0]))


def _synchronises(call: cst.Call, model: Model) -> bool:
    """Whether the same function waits for all work of the device after a call, that of collectives too."""
    function = model.enclosing_function(call)
    return any(
        method_call(later, "synchronize") is not None and model.enclosing_function(later) is function
        for later in model.nodes(cst.Call)
        if model.order(later) > model.order(call)
    )


def _consequence(name: str) -> str:
    if name == "barrier":
        return "no process is held up"
    if name == "isend":
        return "the tensor may change before it is sent"
    if name == "irecv":
        return "the tensor may be read before it has arrived"
    return "the tensors may be read or changed before the work on them is done"


def _instead(name: str) -> str:
    if name == "batch_isend_irecv":
        return "use `dist.send` and `dist.recv`, which wait"
    return f"use `dist.{name[1:]}`, which waits" if name in STARTS else "leave out `async_op=True`"
