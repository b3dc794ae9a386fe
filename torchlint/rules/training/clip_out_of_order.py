"""Gradients are clipped at a point of the step where that changes nothing, or where they are still scaled.

`clip_grad_norm_` or `clip_grad_value_` after the optimizer has used the gradients, right after they were dropped, or
between the backward pass of a loss that a `GradScaler` has scaled and its `step`, without `unscale_`; also in a
function that is called there.

## Why it costs

The optimizer works with gradients as they are when `step` runs. Clipped after that, or before the backward pass has
computed them, they reach it unclipped, and the kernels that clip run for nothing. Gradients of a scaled loss are larger
by the scale, which starts at 65,536: nearly all of them are over the limit then, so that every step is cut down to the
limit and divided by the scale afterwards. PyTorch's page on mixed precision calls a limit for such gradients invalid.

## What to write instead

`loss.backward()`, then `clip_grad_norm_(...)`, then `optimizer.step()`; with a scaler
`scaler.scale(loss).backward()`, `scaler.unscale_(optimizer)`, `clip_grad_norm_(...)`, `scaler.step(optimizer)`.

## When to ignore it

Where the call is there for the norm that it returns, and clips nothing: `clip_grad_norm_(parameters, float("inf"))`.

Holds for all supported versions of torch. Read in "Automatic Mixed Precision examples" of torch 2.13 and in
`torch/amp/grad_scaler.py`, where the scale starts at 2 ** 16.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import SCALERS
from torchlint.semantics.training.step_order import Act, Event
from torchlint.syntax.calls import literal

WORDS = {
    Act.UPDATE: "after `{}` has used the gradients",
    Act.CLEAR: "after `{}` has dropped the gradients and before the next backward pass",
}
CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")

rule = Rule(
    code="TL303",
    name="clip-out-of-order",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="gradients are clipped when nobody uses them any more, or while they are scaled",
    triggers=Triggers.all_of(CLIPS, ("step", "zero_grad")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
        ),
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
    ),
    documentation=__doc__,
    silences={
        "in-order": "A backward pass comes before the call, and a step after it.",
        "unclear": "A call that this file does not show may have computed, used or unscaled the gradients.",
        "sometimes": "What comes before the call does not always happen.",
        "several": "Several optimizers take turns: the call may be about another one.",
        "unscaled": "`unscale_` comes before the call, or the scaler is switched off.",
        "framework": "The clip method of a framework, which knows about its own scaler.",
        "norm-only": "The limit is infinite: the call is there for the norm.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=CLIPS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that clips gradients out of order."""
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return
    clip = model.steps.around(call) if (model.callee(call) or "").rpartition(".")[2] in CLIPS else None
    if clip is None or clip.act is not Act.CLIP or rule.silent("norm-only", _is_for_norm(call)):
        return
    updated = {event.subject for event in model.steps.events(model.steps.root(call)) if event.act is Act.UPDATE}
    found, always = _last(clip, model)
    if updated and found is not None and found.act in WORDS and not _is_used(clip, model):
        if rule.silent("several", len(updated) > 1) or rule.silent("sometimes", not always):
            return
        when = WORDS[found.act].format(model.code(found.node).strip())
        yield Finding(
            call,
            f"`{model.code(call.func)}` runs {when}: nothing is clipped in time. Call it between "
            "`backward()` and `step()`.",
        )
        return
    step = _scaled_step(clip, found, model)
    if step is not None and not rule.silent("unscaled", _is_off(model)):
        yield Finding(
            call,
            f"`{model.code(call.func)}` clips gradients that are still multiplied by the loss scale, so that the limit "
            f"means something else at every scale. Call `unscale_({step.subject})` of the scaler before it.",
        )


def _last(clip: Event, model: Model) -> tuple[Event | None, bool]:
    """Return what happened to the gradients last, other clips aside, and whether it always happens."""
    for event, always in model.steps.preceding(clip):
        hidden = event.act is Act.OTHER
        if event.act not in (Act.CLIP, Act.SCHEDULE) and (not hidden or rule.silent("unclear", hidden)):
            return event, always
    return None, False


def _is_used(clip: Event, model: Model) -> bool:
    """Whether a step may use what is clipped, before other gradients take its place."""
    after = (e.act for e in model.steps.following(clip) if e.act in (Act.UPDATE, Act.BACKWARD, Act.CLEAR, Act.OTHER))
    return next(after, None) in (Act.UPDATE, Act.OTHER)


def _scaled_step(clip: Event, before: Event | None, model: Model) -> Event | None:
    """Return the step of a scaler that uses what is clipped still scaled, here or where the function is called."""
    after = _next(clip, model)
    callers = _callers(clip, model) if before is None or after is None else []
    for outer in callers or [clip]:
        last, step = before or _last(outer, model)[0], after or _next(outer, model)
        is_scaled = last is not None and last.act is Act.BACKWARD and last.scaled
        if is_scaled and step is not None and step.act is Act.UPDATE and step.scaled:
            return step
    return None


def _next(event: Event, model: Model) -> Event | None:
    """Return what happens to the gradients next, as far as their scale goes."""
    acts = (Act.UPDATE, Act.UNSCALE, Act.OTHER)
    return next((later for later in model.steps.following(event) if later.act in acts), None)


def _callers(clip: Event, model: Model) -> list[Event]:
    """Return the calls of the function that clips, if it does so outside of its loops."""
    function = model.steps.root(clip.node)
    calls = model.callers(function) if isinstance(function, cst.FunctionDef) else []
    events = (model.steps.around(call) for call in calls)
    return [event for event in events if event is not None]


def _is_off(model: Model) -> bool:
    """Whether the file makes a scaler that is switched off."""
    made = (call for call in model.nodes(cst.Call) if model.callee(call) in SCALERS)
    return any(literal(model.arguments(call).get("enabled")) is False for call in made)


def _is_for_norm(call: cst.Call) -> bool:
    """Whether an infinity stands among the arguments."""
    for argument in call.args:
        value = argument.value
        given = value.args[0].value if isinstance(value, cst.Call) and value.args else None
        if literal(given) in ("inf", "infinity") or (isinstance(value, cst.Attribute) and value.attr.value == "inf"):
            return True
    return False
