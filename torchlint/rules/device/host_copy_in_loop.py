"""A tensor is copied to the host on every training step.

## Why it costs

`.cpu()`, `.numpy()`, `.tolist()`, and a tensor in `print`, `str`, an f-string, a `%` format or the arguments of a
logger (`logger.info("%s", loss)`) wait until all that is queued has run, then copy: the GPU idles until more is.

## What to write instead

Keep metrics on the device and copy them once, after the loop or every few steps. Where results must be collected,
collect the detached tensors and move them together. What is known before a loop begins is copied once, before it:
`lengths = mask.sum(1).tolist()` outside the loop that denoises. Rows are not copied one by one (`x[i].tolist()`): one
`x.tolist()` waits once. What is only added up, in an evaluation too, is added up on the device: `x.sum()`, not
`x.cpu().sum()`. What a forward pass keeps for the next one stays on the device, and so does what it would bring back:
`f(x.cpu().numpy())` that goes `.to(x.device)` in the same function makes the GPU wait twice, as does, in any loop, what
torch computes on the device as well: `torch.multinomial(p.cpu(), 1).to(device)`. Sizes by which a forward pass cuts
tensors (`x.split(counts.tolist())`) are best kept on the host beside them. Write `.detach().cpu()`, not
`.cpu().detach()`: the latter records the copy in the graph first.

## When to ignore it

The host needs the values in every step: the actions of an agent, results that are written out, metrics of another
library.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.roles import computes_loss
from torchlint.semantics.synchronization.host_reads import COPIERS
from torchlint.syntax.calls import identifier

_COPIES = ("cpu", "numpy", "tolist")
_ROLES = (Role.TRAINING_LOOP, Role.STEP, Role.LOSS, Role.UPDATE)
_NEEDLESS = (
    ": the host waits for the GPU. Keep it on the device (`.detach()`), "
    "and copy once after the loop or every few steps."
)
_ROWS = ", row by row: the host waits for the GPU with each row. Copy the whole tensor once, before the inner loop."
_ADDED = (
    ", only to be added up there: the host waits for the GPU. "
    "Add it up on the device, and read the total once after the loop."
)
_BACK = (
    ", and what is made of it there is copied back, by {}: the GPU waits for the host, and the host for the GPU. "
    "Compute it on the device."
)
_BY_TORCH = (
    ", and what torch makes of it there is copied back, by {}: the GPU waits for the host, and the host for the "
    "GPU. Leave out both copies: torch can make that on the device as well."
)
_WALKED = (
    ", where Python goes on by its values: the host waits for the GPU. Compute on the tensor itself; "
    "take sizes from a shape, or from numbers that the host keeps."
)
_KNOWN = ", although it is known before: the host waits for the GPU each time. Copy it once, before the loop."

rule = Rule(
    code="TL203",
    name="host-copy-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="`.cpu()`, `.numpy()`, `.tolist()`, `print(tensor)` or a tensor in an f-string on every training step",
    triggers=Triggers.all_of("torch"),
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
        "not-hot": "The copy is not made on every training step, and no loop could be spared it.",
        "evaluation": "It belongs to an evaluation, which collects its results on the host: a loop or a function that "
        "evaluates, a branch for that stage; not what torch computes there and brings back to the device.",
        "guarded": "A periodic test, a flag that is off by default or a branch that warns of a value stands around it.",
        "on-cpu": "The tensor is known to live on the CPU, or nothing in the file computes on an accelerator.",
        "no-tensor": "What is copied or printed is no tensor.",
        "read-as-number": "The copy is read as one number: TL202 reports that synchronisation.",
        "rare": "The value of a tensor decides about it, so that it may run hardly ever; TL204 reports that test.",
        "decision": "The value goes to an environment, which runs on the host.",
        "needs-host": "The function that takes it needs it on the host: lengths for `pack_padded_sequence`, targets "
        "for `ctc_loss`, the priorities of a replay buffer, the queries of a search index.",
    },
    fixes=(Safety.DISPLAY,),
)


@rule.check(cst.Call, called=COPIERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a copy to the host in a training step; of a chain of them the last."""
    copies = model.scopes.imports("torch") and model.host_reads.may_copy(call)
    heat = model.heat(call) if copies else None
    copied = model.host_reads.copied(call) if heat is not None else None
    if heat is None or copied is None or not _is_on_accelerator(copied, heat, model):
        return
    known = not heat.trains and model.hoistable.is_known(copied, heat.root)
    rows = model.host_reads.copies_rows(copied, heat.root)
    added = heat.role is Role.EVALUATION_LOOP and model.host_reads.is_added_up_there(call)
    walked = heat.role is Role.FORWARD and model.host_reads.is_walked(call)
    needless = walked or model.host_reads.shows(call) or model.host_reads.is_kept(call)
    roles = (*_ROLES, Role.FORWARD) if needless else _ROLES
    back = "" if known or rows or added else _round_trip(call, heat, model)
    if not (known or rows or added or back or _runs_often(call, heat, roles, model)):
        return
    if rule.silent("read-as-number", model.host_reads.is_read_as_number(call)):
        return
    if rule.silent("decision", model.decides(call)) or rule.silent("needs-host", model.host_reads.needs_host(call)):
        return
    shown = model.code(call)
    instead = back or (_WALKED if walked else _NEEDLESS)
    yield Finding(
        call,
        f"`{shown if len(shown) <= 60 else model.code(copied)}` is copied to the host {heat.often}"
        f"{_KNOWN if known else _ROWS if rows else _ADDED if added else instead}",
        _fix(call, model) if not back else None,
    )


def _round_trip(call: cst.Call, heat: Heat, model: Model) -> str:
    """Return what to say of a copy from which the host makes something that goes back; in loops only torch may."""
    back, instead = model.decisions.computed_by_torch(call), _BY_TORCH
    if back is None and heat.role in (Role.FORWARD, Role.LOSS) and not heat.evaluates:
        back, instead = model.decisions.brought_back(call), _BACK
    if back is None or heat.role is Role.DATA or rule.silent("rare", _is_decided_by_tensor(call, model)):
        return ""
    return instead.format(model.shown(back, f"`{identifier(back.func)}(...)`"))


def _fix(call: cst.Call, model: Model) -> Fix | None:
    swapped = model.host_reads.late_detach(call)
    if swapped is None:
        return None
    outer, inner = swapped
    return Fix(
        "Detach before the copy",
        (Replace(outer.attr, inner.attr.value), Replace(inner.attr, "detach")),
        Safety.DISPLAY,
        "The copy itself stays where it is.",
    )


@rule.check(cst.FormattedStringExpression, cst.BinaryOperation)
def check_text(node: cst.FormattedStringExpression | cst.BinaryOperation, model: Model) -> Iterator[Finding]:
    """Report a tensor whose value is written into a text in a training step."""
    writes = isinstance(node, cst.FormattedStringExpression) or isinstance(node.left, cst.BaseString)
    heat = model.heat(node) if writes and model.scopes.imports("torch") else None
    if heat is None or not _runs_often(node, heat, (*_ROLES, Role.FORWARD), model):
        return
    formatted = model.host_reads.formatted(node)
    if formatted is not None and _is_on_accelerator(formatted, heat, model):
        yield Finding(
            formatted,
            f"The value of the tensor `{model.code(formatted)}` is written into a text {heat.often}: "
            "the host waits for the GPU. Write it every few steps only.",
        )


def _runs_often(node: cst.CSTNode, heat: Heat, roles: tuple[Role, ...], model: Model) -> bool:
    """Whether a node runs on every training step, or in what else is asked for."""
    is_often = heat.role in roles or computes_loss(heat, model.definitions)
    if not is_often or heat.evaluates or rule.silent("evaluation", model.inference.only_evaluates(node)):
        return False
    return not rule.silent("rare", _is_decided_by_tensor(node, model))


def _is_decided_by_tensor(node: cst.CSTNode, model: Model) -> bool:
    """Whether a condition around a node looks at the value of a tensor, or at one that was read before."""
    tests = (ancestor.test for ancestor in model.ancestors(node) if isinstance(ancestor, (cst.If, cst.IfExp)))
    return any(
        not model.within(node, test) and (model.value(operand).is_tensor or model.host_reads.was_read(operand))
        for test in tests
        for operand in model.conditions.operands(test)
    )


def _is_on_accelerator(copied: cst.BaseExpression, heat: Heat, model: Model) -> bool:
    if not model.host_reads.is_certainly_tensor(copied):
        return False
    return not rule.silent("on-cpu", not model.may_be_on_accelerator(model.value(copied), heat))
