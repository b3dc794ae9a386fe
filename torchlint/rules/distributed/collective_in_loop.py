"""Processes wait for each other in every training step, for what is not needed in every step.

`dist.barrier()`, a collective of Python objects (`all_gather_object`, `gather_object`, `broadcast_object_list`,
`scatter_object_list`), or `dist.all_reduce` / `dist.reduce` of a loss or metric that is only logged.

## Why it costs

Every collective makes all processes wait for the slowest one. The gradients have to be summed in each step, and that is
done while the backward pass still runs; a barrier or the sum of a logged loss comes on top, and nothing runs beside it.
Collectives of objects pickle on the host, exchange sizes first, and copy through the GPU with NCCL: several
synchronisations each. `.item()` on the sum makes the host wait as well.

## What to write instead

Keep a running sum on the device, and exchange it when it is logged:

```python
total += loss.detach()
if step % 100 == 0:
    dist.all_reduce(total)
    print(total.item() / 100 / dist.get_world_size())
    total.zero_()
```

Exchange tensors rather than objects, several numbers in one tensor. A barrier is needed around what one process does
for the others (files, downloads), and not between steps: the sum of the gradients keeps the processes together.

## When to ignore it

Where the next step depends on the value: early stopping, gradients that are skipped on all processes.

Holds for all supported versions of torch. Read on the page of `torch.distributed` of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.model import Model
from torchlint.syntax.calls import identifier, literal, method_call

PACKAGE = "torch.distributed."
OBJECTS = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list")
SUMS = ("all_reduce", "reduce")
LOGGED = re.compile(r"(^|_)(loss(es)?|acc|accuracy|acc\d|metrics?|correct|top\d|error)(_|$)", re.IGNORECASE)
SEVERAL = re.compile(
    r"distributed|world_?size|global_size|num_processes|n(um)?_gpus?|rank|ddp|dist\.is_", re.IGNORECASE
)
VIEWS = ("detach", "clone", "mean", "sum", "div_", "mul_", "float")

rule = Rule(
    code="TL705",
    name="collective-in-loop",
    family=Family.DISTRIBUTED,
    since="0.1.0",
    default=Default.ADVICE,
    summary="processes wait for each other in every step, for what is only logged",
    triggers=Triggers.all_of(
        "distributed", ("barrier", *OBJECTS, *SUMS), ("backward", "step", "training_step", "train_step")
    ),
    examples=(
        Example(
            bad="""
import torch.distributed as dist
from torch import optim

optimizer = optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    net(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.barrier()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/distributed.html#collective-functions",),
    documentation=__doc__,
    silences={
        "not-every-step": "It runs every few steps, once for an epoch, or in an evaluation.",
        "asked-for": "A condition decides that asks for more than the number of processes.",
        "not-logged": "What is summed is no loss or metric: gradients, statistics of a layer.",
        "trained-on": "The loss goes into a backward pass afterwards.",
        "asynchronous": "The call returns at once: `async_op=True`, or a variable decides.",
        "other": "The function is none of `torch.distributed`.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a collective that runs on every training step."""
    name = (model.callee(call) or "").removeprefix(PACKAGE)
    if name not in (*OBJECTS, *SUMS, "barrier"):
        return
    given = model.arguments(call, ("tensor",) if name in SUMS else ())
    if rule.silent("asynchronous", given.get("async_op") is not None and literal(given.get("async_op")) is not False):
        return
    summed = _variable(given.get("tensor")) if name in SUMS else None
    if name in SUMS and rule.silent("not-logged", summed is None or not _is_logged(summed, model)):
        return
    heat = model.heat(call)
    if heat is None or not heat.trains or rule.silent("asked-for", _is_conditional(call, heat.root, model)):
        return
    if rule.silent("test", model.in_test(call)):
        return
    if summed is not None and rule.silent("trained-on", _trained_on(summed, call, model)):
        return
    yield Finding(call, _message(call, name, model))


def _message(call: cst.Call, name: str, model: Model) -> str:
    shown = model.shown(call, f"`{model.code(call.func)}`")
    if name == "barrier":
        return (
            f"{shown} makes all processes wait for the slowest in every step. Leave it out: the sum of the gradients "
            "keeps them together."
        )
    if name in OBJECTS:
        return (
            f"{shown} pickles objects and makes all processes wait for each other in every step. Exchange a tensor, "
            "and only when it is needed: when it is logged, or after the loop."
        )
    return (
        f"{shown} makes all processes wait for each other in every step, for a value that is logged. Add it up on the "
        "device, and sum it over the processes when it is logged."
    )


def _is_conditional(call: cst.Call, root: cst.CSTNode, model: Model) -> bool:
    """Whether more than the number of processes decides whether a call runs."""
    child: cst.CSTNode = call
    for ancestor in model.ancestors(call):
        if ancestor is root or isinstance(ancestor, cst.FunctionDef):
            return False
        if (
            isinstance(ancestor, cst.If)
            and child is not ancestor.test
            and not SEVERAL.search(model.code(ancestor.test))
        ):
            return True
        child = ancestor
    return False


def _variable(tensor: cst.BaseExpression | None) -> cst.Name | None:
    """Return the variable that is summed, through methods and attributes that keep its meaning."""
    if isinstance(tensor, cst.Call):
        method = method_call(tensor, *VIEWS)
        return _variable(method.value) if method is not None else None
    if isinstance(tensor, cst.Attribute) and tensor.attr.value == "data":
        return _variable(tensor.value)
    return tensor if isinstance(tensor, cst.Name) else None


def _is_logged(variable: cst.Name, model: Model) -> bool:
    """Whether a name, or what it iterates over, is called as what is logged."""
    if LOGGED.search(variable.value):
        return True
    iterated = [b.value for b in model.reaching(variable) if b.kind is BindingKind.ITERATION and b.value is not None]
    methods = [method_call(value, "values", "items") for value in iterated]
    return bool(methods) and all(m is not None and LOGGED.search(identifier(m.value)) for m in methods)


def _trained_on(variable: cst.Name, call: cst.Call, model: Model) -> bool:
    """Whether a backward pass starts from the variable after the call."""
    return any(
        method_call(later, "backward") is not None
        and any(isinstance(n, cst.Name) and n.value == variable.value for n in model.descendants(later.func))
        for later in model.nodes(cst.Call)
        if model.order(later) > model.order(call) and model.enclosing_function(later) is model.enclosing_function(call)
    )
