"""The same values are copied to the device again in every step.

## Why it costs

A tensor that lies on the host and does not change is copied over the bus in every pass, and as long as its memory is
not pinned the program waits for each copy. `torch.tensor([..], device=device)` is one too: the numbers are written
into host memory first.

## What to write instead

In a loop, move the tensor once before it: `mask = mask.to(device)`. In a module, register the tensor as a buffer
(`self.register_buffer("mean", torch.tensor([..]), persistent=False)`), which moves with the module; other objects
move theirs where they are made. A constant number needs no copy: `torch.full((), 0.5, device=device)`.

The fix moves the copy in front of the loop. It is offered where the copy runs in every pass, and unsafe: every pass
shares one tensor and sees no change that a function makes to the original; it is made also for a loop without passes.

## When to ignore it

The tensor does not fit on the device beside everything else, or the loop runs a few times only. Modules that are made
in a loop are not reported. Holds for all supported versions of torch; read in the documentation of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import InsertBefore, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import DATA_FACTORIES
from torchlint.semantics.tensors.fill_values import filled_on_device
from torchlint.semantics.tensors.moves import Move
from torchlint.semantics.values import Device, Graph, Kind, Origin
from torchlint.syntax.calls import method_call

rule = Rule(
    code="TL210",
    name="loop-invariant-transfer",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="the same values are copied to the device in every step",
    triggers=Triggers.all_of(("to", "cuda", "type_as", "tensor", "as_tensor"), ("cuda", "device", "type_as")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    scale = torch.tensor([0.2, 0.8])
    for x in loader:
        loss = (model(x.cuda(non_blocking=True)) * scale.cuda()).sum()
        loss.backward()
        optimizer.step()
""",
            good="""
import torch

def train(model, loader, optimizer):
    scale = torch.tensor([0.2, 0.8])
    scale_on_device = scale.cuda()
    for x in loader:
        loss = (model(x.cuda(non_blocking=True)) * scale_on_device).sum()
        loss.backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer",
        "https://github.com/pytorch/pytorch/issues/120996",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The copy is not made in every step.",
        "changes": "The tensor, the data or the device is another one in each pass, or something may write to it.",
        "on-device": "Nothing says that the tensor lies on the host and goes to a device, or there is nothing in it.",
        "moves-along": "It is a buffer or a parameter, which moves with its module, or the module moves it itself.",
        "written": "What the copy gives is written to: each pass needs a tensor of its own.",
        "branch": "A branch may leave the copy out: it is made in some steps only.",
        "leaf": "Each pass makes a tensor that asks for a gradient.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
    yields_to=("TL201",),
)


@rule.check(cst.Call, called=("to", "cuda", "type_as"))
def check_move(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a move of a tensor that is the same in each step."""
    method = method_call(call, "to", "cuda", "type_as")
    moved = model.invariants.variable(method.value) if method is not None else None
    move = (model.move(call) or model.moves.to_other(call, tuple(Device))) if moved is not None else None
    if move is None or moved is None or rule.silent("on-device", not _is_copy(move, model)):
        return
    heat = _repeats(call, model)
    if heat is None or rule.silent("changes", not _is_same(move, moved, heat.root, model)):
        return
    in_loop = isinstance(heat.root, (cst.For, cst.While))
    sources = [] if in_loop else model.invariants.apart(moved, heat.root)
    if not in_loop and rule.silent("moves-along", not sources):
        return
    advice = "Move it once, before the loop" if in_loop else _advice(sources or [moved], model)
    told = f"`{model.code(move.receiver)}` lies on the host and is copied to the device {heat.often}"
    fix = _fix(move, heat, model) if in_loop and moved is move.receiver else None
    yield Finding(call, f"{told}, though it does not change. {advice}.", fix)


def _advice(sources: list[cst.BaseExpression], model: Model) -> str:
    if not all(map(model.invariants.in_module, sources)):
        return "Move it once and keep what that gives"
    name = model.code(sources[0]).rpartition(".")[2]
    return f'Register it as a buffer of the module: `self.register_buffer("{name}", ..., persistent=False)`'


def _repeats(call: cst.Call, model: Model) -> Heat | None:
    """What makes a call run in every step, if no step can do without it and none writes to what it gives."""
    heat = model.heat(call)
    root = model.invariants.repeated(call, heat.root) if heat is not None and heat.role is not Role.DATA else None
    if heat is None or root is None or rule.silent("written", model.invariants.is_changed(call, root)):
        return None
    is_each = model.invariants.is_unconditional(call, root, heat.root)
    role = Role.STEP if heat.trains and root is not heat.root else heat.role
    return None if rule.silent("branch", not is_each) else heat._replace(root=root, role=role)


def _is_copy(move: Move, model: Model) -> bool:
    """Whether a tensor that certainly lies on the host is moved to an accelerator."""
    moved = model.value(move.receiver)
    lies_there = moved.is_tensor and moved.device is Device.CPU and moved.evidence >= Evidence.INFERRED
    if not lies_there or moved.origin in (Origin.BATCH, Origin.PARAMETER):
        return False
    return move.place is not Device.CPU and not model.on_default_device(move.call)


def _is_same(move: Move, moved: cst.BaseExpression, root: cst.CSTNode, model: Model) -> bool:
    """Whether each pass moves the same tensor, in a loop to the same device."""
    places = move.names if isinstance(root, (cst.For, cst.While)) else ()
    return model.invariants.is_same(moved, root) and all(model.invariants.is_settled(name, root) for name in places)


def _fix(move: Move, heat: Heat, model: Model) -> Fix | None:
    loop, name = heat.root, f"{model.code(move.receiver).rpartition('.')[2]}_on_device"
    assert isinstance(loop, (cst.For, cst.While))
    once = model.invariants.runs_once(move.call, loop) and model.invariants.is_only_copy(move.call, move.receiver, loop)
    if not once or model.names_any_of(name) or model.device_context(move.call):
        return None
    moved = model.value(move.receiver)
    if moved.graph is not Graph.DETACHED or not all(model.is_plain(each) for each in move.names):
        return None
    return Fix(
        "Copy it once, before the loop",
        (InsertBefore(loop, (f"{name} = {model.code(move.call)}",)), Replace(move.call, name)),
        Safety.UNSAFE,
        "All passes share one tensor, whatever a function does to the original; it is made also for zero passes.",
        min(move.evidence, Evidence.INFERRED),
    )


@rule.check(cst.Call, called=DATA_FACTORIES)
def check_constant(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report constants that each step writes into host memory and copies."""
    if model.callee(call) not in DATA_FACTORIES:
        return
    given = model.arguments(call)
    data, device = given.get("data"), given.get("device")
    if data is None or device is None or given.open:
        return
    if rule.silent("leaf", not given.absent("requires_grad")):
        return
    leaves = model.moves.leaves_host(device, model.accelerator)
    if rule.silent("on-device", not leaves or model.code(data) in ("[]", "()")):
        return
    heat = _repeats(call, model)
    if heat is None or rule.silent("changes", not model.invariants.is_constant(data, heat.root)):
        return
    yield Finding(call, _message(call, data, heat, model))


def _message(call: cst.Call, data: cst.BaseExpression, heat: Heat, model: Model) -> str:
    shown = model.shown(call, f"`{model.code(call.func)}(...)`")
    filled = filled_on_device(call, data, model)
    if filled:
        advice = f"`{filled}` copies nothing"
    elif isinstance(heat.root, (cst.For, cst.While)):
        advice = "Make it once, before the loop"
    else:
        owner = model.enclosing(call, cst.ClassDef)
        is_module = isinstance(owner, cst.ClassDef) and model.definitions.class_kind(owner) is Kind.MODULE
        kept = "register it as a buffer, which moves with the module" if is_module else "keep it"
        advice = f"Make it once and {kept}"
    return f"{shown} writes the same numbers into host memory and copies them to the device {heat.often}. {advice}."
