"""A profiler records every training step of every run.

`torch.autograd.profiler.profile`, `emit_nvtx` and `emit_itt`, and `torch.profiler.profile` without a `schedule`, around
training steps or started before them; and a Lightning `Trainer(profiler="advanced")` or `"pytorch"`.

## Why it costs

The profiler stores an event for each operation and each kernel until its block ends: memory grows with every step, each
operation takes longer, and at the end the events are sorted out on one core, which can take longer than the training.
`emit_nvtx` and `emit_itt` push and pop a range around each operation.

## What to write instead

Remove it, let a flag switch it on, or pass a schedule that records a few steps:
`torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3))`, with `prof.step()` in the loop.

## When to ignore it

In a script that exists to measure. The rule is silent for blocks that take no training step, behind flags and arguments
(`enabled=args.profile`), with a `schedule`, for `record_function`, which is only a label, and in tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal, method_call

SCHEDULED = "torch.profiler.profile"
PROFILERS = frozenset(
    (
        SCHEDULED,
        "torch.autograd.profiler.profile",
        "torch.autograd.profiler_legacy.profile",
        "torch.autograd.profiler.emit_nvtx",
        "torch.autograd.profiler.emit_itt",
    )
)
TRAINER = "lightning.pytorch.Trainer"
# Lightning's profilers that look at more than whole phases, by their names and classes.
DETAILED = frozenset(("advanced", "pytorch"))
CLASSES = frozenset(("AdvancedProfiler", "PyTorchProfiler"))

rule = Rule(
    code="TL602",
    name="profiler-left-on",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a profiler records every training step",
    triggers=Triggers.all_of(("profiler", "profiler_legacy"), ("profile", "emit_nvtx", "emit_itt", "Trainer")),
    examples=(
        Example(
            bad="from torch import optim, profiler\n\n"
            "optimizer = optim.SGD(weights)\n"
            "with profiler.profile():\n    net(x).sum().backward()\n    optimizer.step()\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/profiler.html",
        "https://docs.pytorch.org/docs/stable/autograd.html#profiler",
    ),
    documentation=__doc__,
    silences={
        "schedule": "A schedule limits which steps are recorded, or a star argument may carry one.",
        "argument": "Whether it records is decided by a variable or an option, or it is off.",
        "asked-for": "The code runs only if a flag or its caller asks for it, or after an error.",
        "no-training": "No training step is taken in the block, or the file never updates parameters.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.With)
def profiled(node: cst.With, model: Model) -> Iterator[Finding]:
    """Report a profiler around training steps."""
    for item in node.items:
        call = _made(item.item, model)
        name = model.callee(call) if call is not None else None
        if call is None or name not in PROFILERS or _is_limited(call, name, model):
            continue
        if rule.silent("asked-for", model.chosen(node) or model.chosen(call)):
            continue
        if rule.silent("test", model.in_test(node)) or rule.silent("no-training", not _records_steps(node, model)):
            continue
        yield Finding(item.item, _message(call, name, model))


@rule.check(cst.Call, called=("start",))
def started(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a profiler that is started before training steps and records until they end."""
    method = method_call(node, "start")
    call = _made(method.value, model) if method is not None and isinstance(method.value, cst.Name) else None
    if method is None or call is None or model.callee(call) != SCHEDULED or _is_limited(call, SCHEDULED, model):
        return
    if rule.silent("asked-for", model.chosen(node) or model.chosen(call)) or rule.silent("test", model.in_test(node)):
        return
    trains = model.training_code.updates() and any(
        map(model.training_code.trains, _recorded(node, method.value, model))
    )
    if rule.silent("no-training", not trains):
        return
    yield Finding(call, _message(call, SCHEDULED, model))


def _recorded(start: cst.Call, profiler: cst.BaseExpression, model: Model) -> Iterator[cst.CSTNode]:
    """Yield the statements after a start, up to the one in which the profiler is told to stop."""
    name = model.code(profiler)
    for statement in model.following(start):
        if isinstance(statement, cst.For) and _is_cut_short(statement, model):
            continue
        methods = (node for node in model.descendants(statement) if isinstance(node, cst.Attribute))
        if any(method.attr.value == "stop" and model.code(method.value) == name for method in methods):
            return
        yield statement


def _is_cut_short(loop: cst.For, model: Model) -> bool:
    """Whether a loop is over the first few of something, or ends when it has had enough."""
    return isinstance(loop.iter, cst.Subscript) or any(isinstance(node, cst.Break) for node in model.descendants(loop))


def _message(call: cst.Call, name: str, model: Model) -> str:
    advice = "pass a `schedule` that records a few steps" if name == SCHEDULED else "let a flag switch it on"
    return (
        f"`{model.code(call.func)}` records every operation of every training step: each takes longer, and the "
        f"events fill the memory. Remove it, or {advice}."
    )


@rule.check(cst.Call)
def of_trainer(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a Lightning trainer that is given a profiler of every operation or function."""
    if model.callee(node) != TRAINER:
        return
    profiler = model.arguments(node).get("profiler")
    made = _made(profiler, model) if profiler is not None else None
    name = model.callee(made) if made is not None else None
    if profiler is None or (literal(profiler) not in DETAILED and (name or "").rpartition(".")[2] not in CLASSES):
        return
    if made is not None and _is_limited(made, SCHEDULED, model):
        return
    if rule.silent("asked-for", model.chosen(node)) or rule.silent("test", model.in_test(node)):
        return
    yield Finding(
        node,
        f"`{model.code(node.func)}(profiler={model.code(profiler)})` records the functions or operations of the "
        "training steps in every run: each takes longer, and the events fill the memory. Remove it, let a flag switch "
        'it on, or pass `profiler="simple"`, which only times whole phases.',
    )


def _made(expression: cst.BaseExpression, model: Model) -> cst.Call | None:
    """Return the call that makes a context, also where a variable holds it."""
    if isinstance(expression, cst.Name):
        found = model.reaching(expression)
        value = found[0].value if len(found) == 1 and not found[0].path else None
        return value if isinstance(value, cst.Call) else None
    return expression if isinstance(expression, cst.Call) else None


def _is_limited(call: cst.Call, name: str, model: Model) -> bool:
    given = model.arguments(call, ("activities",) if name == SCHEDULED else ("enabled",))
    if rule.silent("schedule", given.open or given.get("schedule") is not None):
        return True
    enabled = given.get("enabled")
    return rule.silent("argument", enabled is not None and literal(enabled) is not True)


def _records_steps(block: cst.With, model: Model) -> bool:
    """Whether the block holds training steps, or is a part of one."""
    if not model.training_code.updates():
        return False
    heat = model.heat(block)
    return model.training_code.trains(block.body) or (heat is not None and heat.trains)
