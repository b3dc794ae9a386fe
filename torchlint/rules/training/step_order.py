"""The parts of a training step run in an order in which one of them comes to nothing.

`optimizer.step()` right after the gradients were dropped; a scheduler that steps before the optimizer; a loop in which
nothing drops the gradients.

## Why it costs

Without gradients the optimizer skips every parameter. `scheduler.step()` first skips the first value of the schedule;
torch warns about it. Gradients that are never dropped add up, so that each step repeats all steps before it.

## What to write instead

`zero_grad()`, `backward()`, `step()` for each batch, `scheduler.step()` after the epoch.

## When to ignore it

Where gradients are meant to add up, or come from code that this file does not show.

Holds for all supported versions; read in `torch.optim` and `torch/optim/lr_scheduler.py` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.training.step_order import Act, Event
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import canonical

SCHEDULERS = "torch.optim.lr_scheduler."
RESETS = ("zero_grad", "grad", "zero_grads", "reset_grad", "clear_grad", "zero_gradients")

rule = Rule(
    code="TL309",
    name="step-order",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a step of the optimizer or scheduler comes at the wrong time, or gradients are never dropped",
    triggers=Triggers.all_of("step", ("zero_grad", "backward", "lr_scheduler")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.zero_grad()
        optimizer.step()
""",
        ),
        Example(
            bad="""
from torch.optim.lr_scheduler import StepLR

def train(loss, optimizer):
    scheduler = StepLR(optimizer, 10)
    for epoch in range(30):
        scheduler.step()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
    ),
    documentation=__doc__,
    silences={
        "in-order": "Gradients are computed, used and dropped, or dropped, computed and used; accumulation too.",
        "unclear": "A call that this file does not show, or code that writes to `.grad`, may have given gradients.",
        "other": "The gradients of another optimizer are dropped.",
        "sometimes": "The gradients are not always dropped before the step, or the scheduler does not always step.",
        "own-step": "The file defines the `step` that is called, or it is given a closure.",
        "given": "The scheduler is told the epoch or a metric.",
        "reset": "Something in the file drops gradients.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=("step",))
def after_clearing(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a step of an optimizer whose gradients have just been dropped."""
    update = _update(call, model)
    if update is None:
        return
    cleared, always = _cleared(update, model)
    if cleared is None or rule.silent("sometimes", not always):
        return
    if rule.silent("own-step", isinstance(call.func, cst.Attribute) and model.own_method(call.func) is not None):
        return
    yield Finding(
        call,
        f"`{model.code(call)}` runs right after `{model.code(cleared.node).strip()}`, without a backward pass between: "
        "there are no gradients, and nothing is trained. Drop them after the step, or before `backward()`.",
    )


def _update(call: cst.Call, model: Model) -> Event | None:
    found = model.steps.around(call) if method_call(call, "step") is not None else None
    return found if found is not None and found.act is Act.UPDATE else None


def _cleared(update: Event, model: Model) -> tuple[Event | None, bool]:
    """Return the event that left an optimizer without gradients, and whether it always happens."""
    if not any(event.act is Act.BACKWARD for event in model.steps.events(model.steps.root(update.node))):
        return None, False
    for event, always in model.steps.preceding(update):
        if event.act is Act.CLEAR:
            return (None, False) if rule.silent("other", event.subject != update.subject) else (event, always)
        if event.act is Act.OTHER and not rule.silent("unclear", True):
            continue
        if event.act in (Act.BACKWARD, Act.OTHER) or event.subject == update.subject != "":
            break
    return None, False


@rule.check(cst.Call, called=("step",))
def schedule(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a scheduler that steps before its optimizer does."""
    method = method_call(call, "step")
    optimizer = _scheduled(method.value, model) if method is not None else None
    if optimizer is None or rule.silent("given", bool(call.args)):
        return
    loop = model.steps.root(call)
    if not isinstance(loop, LOOPS) or rule.silent("sometimes", model.guard(call, loop) is not None):
        return
    updates = [other for other in model.nodes(cst.Call) if _updates(other, optimizer, loop, model)]
    if not updates or rule.silent("in-order", model.order(updates[0]) < model.order(call)):
        return
    yield Finding(
        call,
        f"`{model.code(call)}` comes before the step of `{optimizer}` in each pass of the loop: the first value of the "
        "schedule is skipped. Call it after the optimizer's steps.",
    )


def _scheduled(scheduler: cst.BaseExpression, model: Model) -> str | None:
    """Return the optimizer that a scheduler is made for, as the code names it."""
    bindings = model.reaching(scheduler) if isinstance(scheduler, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT else None
    name = model.callee(made) if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or name is None or not name.startswith(SCHEDULERS) or name.endswith("Plateau"):
        return None
    optimizer = model.arguments(made, ("optimizer",)).get("optimizer")
    return canonical(optimizer) if optimizer is not None else None


def _updates(call: cst.Call, optimizer: str, loop: cst.CSTNode, model: Model) -> bool:
    """Whether a call below a loop is a step of an optimizer, or runs a function of the file that takes one."""
    if not model.within(call, loop):
        return False
    update = _update(call, model)
    if update is not None:
        return update.subject == optimizer
    function = model.definition(call.func)
    return isinstance(function, cst.FunctionDef) and any(
        isinstance(below, cst.Call) and (found := _update(below, model)) is not None and found.subject == optimizer
        for below in model.descendants(function)
    )


@rule.check(cst.Call, called=("step",))
def never_cleared(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a step in a loop over batches of a file that never drops gradients."""
    update = _update(call, model)
    loop = model.steps.root(call) if update is not None else None
    if update is None or not isinstance(loop, LOOPS) or not isinstance(call.func, cst.Attribute):
        return
    events = model.steps.events(loop)
    if not any(event.act is Act.BACKWARD for event in events) or any(map(model.steps.may_clear, events)):
        return
    plain = _is_plain(call.func.value, model) and model.heat(loop.body) is not None
    if plain and not (model.speaks_of(*RESETS) or model.names_any_of(*RESETS)):
        yield Finding(
            call,
            f"`{model.code(call)}` uses gradients that nothing in this file ever drops: each backward pass adds to "
            f"those of all passes before. Call `{model.code(call.func.value)}.zero_grad()` once per step.",
        )


def _is_plain(optimizer: cst.BaseExpression, model: Model) -> bool:
    """Whether an optimizer is torch's, or a variable of unknown make: a class of its own may drop gradients itself."""
    value = model.value(optimizer)
    if value.evidence is Evidence.PROVEN or not isinstance(optimizer, cst.Name):
        return value.evidence is Evidence.PROVEN and value.definition is None
    made = [b.value.func for b in model.reaching(optimizer) if isinstance(b.value, cst.Call)]
    return not any(identifier(maker)[:1].isupper() for maker in made)
