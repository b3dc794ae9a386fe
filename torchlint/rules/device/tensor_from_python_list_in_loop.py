"""A tensor is built from a Python list in every step, though the device could build it.

## Why it costs

`torch.tensor([loss_a, loss_b])` of tensors reads every one of them as a number: on an accelerator the program waits
for each, and the result has lost the graph. `torch.tensor([t] * n, device="cuda")` writes the same number n times
into a Python list and into host memory and waits for the copy, where a kernel would write it in place.

## What to write instead

`torch.stack([loss_a, loss_b]).detach()` for tensors, which stays on the device; without `.detach()` it stays in the
graph as well. `torch.full((n,), t, device=device)` for one number, once or n times.

The fixes are unsafe: `stack` keeps dtype, device and shape of the tensors and refuses an empty list, and `full` gives a
number of NumPy the default dtype, and an empty tensor another one, and raises for a count below 0. There is none where
NumPy gets the result, which it cannot read from an accelerator.

## When to ignore it

The numbers come from the host and differ: then there is no way around the copy, and the rule is silent. Numbers that
are the same in each step are TL210's; where `.item()` is written out, TL202 reports it.

Holds for all supported versions of torch; read in the documentation of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import DATA_FACTORIES
from torchlint.semantics.tensors.host_needs import may_need_host
from torchlint.semantics.values import Graph

_KEPT = "Dtype, device and shape of the tensors are kept, and an empty list is refused."

rule = Rule(
    code="TL217",
    name="tensor-from-python-list-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a tensor is built from a Python list in every step, though the device could build it",
    triggers=Triggers.all_of(("tensor", "as_tensor")),
    examples=(
        Example(
            bad="""
import torch
import torch.nn.functional as F

def train(model, loader, optimizer):
    for x in loader:
        out = model(x.cuda(non_blocking=True))
        first, second = F.l1_loss(out, x), F.mse_loss(out, x)
        losses = torch.tensor([first, second])
        first.backward()
        optimizer.step()
    return losses
""",
            good="""
import torch
import torch.nn.functional as F

def train(model, loader, optimizer):
    for x in loader:
        out = model(x.cuda(non_blocking=True))
        first, second = F.l1_loss(out, x), F.mse_loss(out, x)
        losses = torch.stack([first, second]).detach()
        first.backward()
        optimizer.step()
    return losses
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.stack.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.full.html",
        "https://github.com/pytorch/pytorch/issues/120996",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The tensor is not made in every step.",
        "numbers": "The list holds several numbers of the host, or nothing is known of what it holds.",
        "on-cpu": "The tensor stays on the host, or the tensors in the list are known to be there.",
        "constant": "The numbers are the same in each step: TL210 reports the copy.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=DATA_FACTORIES)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a list of tensors, or of one number, that becomes a tensor."""
    if model.callee(call) not in DATA_FACTORIES:
        return
    given = model.arguments(call)
    data, device = given.get("data"), given.get("device")
    if data is None or given.open:
        return
    tensors = model.lists.tensors(data)
    number = model.lists.number(data) if device is not None and not tensors else None
    if not tensors and number is None:
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA:
        return
    if tensors:
        if rule.silent("on-cpu", not all(model.may_be_on_accelerator(model.value(t), heat) for t in tensors)):
            return
        yield _of_tensors(call, data, heat, model)
    elif number is not None and device is not None:
        if rule.silent("on-cpu", not model.moves.leaves_host(device, model.accelerator)):
            return
        if rule.silent("constant", model.invariants.is_constant(number.value, heat.root)):
            return
        shape = f"({model.code(number.count)},)" if number.count is not None else number.shape
        yield _of_number(call, data, f"{shape}, {model.code(number.value)}", heat, model)


def _of_tensors(call: cst.Call, data: cst.BaseExpression, heat: Heat, model: Model) -> Finding:
    fix = None
    name = model.spelling("torch.stack", call)
    is_plain = len(call.args) == 1 and call.args[0].keyword is None and not model.is_partial(call)
    if name is not None and is_plain and not may_need_host(call, model.evaluator):
        has_graph = any(model.value(tensor).graph is not Graph.DETACHED for tensor in model.lists.tensors(data))
        whole = Replace(call, f"{name}({model.code(call.args[0].value)}).detach()")
        fix = _rewritten(call, "torch.stack", (whole if has_graph else Replace(call.func, name),), _KEPT)
    shown = model.shown(data, "the list")
    return Finding(
        call,
        f"`{model.code(call.func)}` reads every tensor in {shown} as a number, {heat.often}: the program waits for "
        "each. `torch.stack` leaves them on the device.",
        fix,
    )


def _of_number(call: cst.Call, data: cst.BaseExpression, full: str, heat: Heat, model: Model) -> Finding:
    fix = None
    name = model.spelling("torch.full", call)
    is_first = call.args[0].value is data and call.args[0].keyword is None
    if name is not None and is_first and not model.is_partial(call) and _may_swap(data, model):
        edits = (Replace(call.func, name), Replace(call.args[0], full))
        fix = _rewritten(
            call,
            "torch.full",
            edits,
            "A number of NumPy gets the default dtype, as does an empty list. A count below 0 raises.",
        )
    return Finding(
        call,
        f"{model.shown(call, 'The tensor')} is written on the host and copied to the device {heat.often}. "
        f"`torch.full({full}, device=...)` writes the number there.",
        fix,
    )


def _may_swap(data: cst.BaseExpression, model: Model) -> bool:
    """Whether nobody can notice that the count is evaluated before the number."""
    number = model.lists.number(data)
    parts = (number.value, number.count) if number is not None and number.count is not None else ()
    kinds = [{type(node) for node in model.descendants(part)} for part in parts]
    binds = any(not kind.isdisjoint((cst.NamedExpr, cst.Await, cst.Yield)) for kind in kinds)
    return not binds and sum(cst.Call in kind for kind in kinds) < 2


def _rewritten(call: cst.Call, factory: str, edits: tuple[Edit, ...], why: str) -> Fix:
    return Fix(f"Use `{factory}`", edits, Safety.UNSAFE, why, Evidence.INFERRED)
