"""A tensor's value is read into a Python number on every step.

## Why it costs

CUDA kernels run asynchronously: Python queues work and runs ahead of the GPU. `tensor.item()`, `float(tensor)`,
`int(tensor)` and `bool(tensor)` need the value: the host waits until everything queued before has run, and the GPU
idles until Python has queued new work. A loop over the elements of a tensor, or over gradients, waits for each, unless
it visibly runs now and then only. Some functions do it inside: `math.sqrt(tensor)`, `writer.add_scalar(tag, tensor)`,
`wandb.log({"loss": tensor})`, `scaler.get_scale()`, a `GradScaler`'s `state_dict()`, `ReduceLROnPlateau.step(tensor)`.

## What to write instead

Keep the running total a tensor and convert it once after the loop; log every few steps; read several values with one
`torch.stack([...]).tolist()`. A total in `float64` adds up exactly as Python floats do. The size of a tensor has to be
known to the host: take it from a shape, or from lengths that were never copied to the device.

The fix turns `total += loss.item()` into `total += loss.detach().double()` and converts `total` once after the loop,
and `losses.append(loss.item())` likewise, where the total is local, starts as a number (the list: empty) and is only
read after the loop. Integer tensors are added up as integers. The result has the same type and value as before, also
where the loop does not run. The fix is unsafe in that the accumulator is a tensor while the loop runs: MPS has no
`float64`, and CUDA divides a tensor by a number by multiplying with its reciprocal, which can change the last bit of
`loss.item() / n`. No fix is offered where the loop, a closure or an `except` around it can see the unfinished total.

## When to ignore it

The value decides what the program does next (early stopping, the action of an agent, the next token), the step takes so
long that a wait does not matter, or the program runs on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import InsertAfter, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import NO_OPTION, Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.synchronization.host_reads import READERS, ScalarRead

if TYPE_CHECKING:
    from torchlint.semantics.retention.totals import Accumulation

rule = Rule(
    code="TL202",
    name="item-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="`.item()` (or `float(t)`) on every step makes the host wait for the GPU",
    triggers=Triggers.all_of((*"item float int bool get_scale state_dict math add_scalar step wandb mlflow".split(),)),
    examples=(
        Example(
            bad="""
import torch

def evaluate(model, loader: torch.utils.data.DataLoader, criterion):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            total += loss.item()
    return total
""",
            good="""
import torch

def evaluate(model, loader: torch.utils.data.DataLoader, criterion):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            total += loss.detach().double()
        total = float(total)
    return total
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "Not on every step: once per epoch or model, at set-up, outside loops, in a few written-out passes.",
        "guarded": "A periodic test, a clock, a flag for looking on (`debug`) or a warning of a value is around it.",
        "asked": "A test of the same value stands around it, or is what it is (`if bool(t)`, TL204): that is reported.",
        "no-tensor": "What is read is no torch tensor, or may be a number for all that is visible: `float(scale)`.",
        "on-cpu": "The tensor is known to live on the CPU, or nothing in the file computes on an accelerator.",
        "data-worker": "It runs in a dataset or a collate function, where tensors live on the CPU.",
        "decision": "The value decides what the program does next: the action of an agent, the next token, a word of "
        "another process that ends the loop.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=READERS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a scalar read in a hot place."""
    may_read = model.host_reads.may_read(call)
    heat = model.heat(call, NO_OPTION) or model.tensor_functions.of_read(call) if may_read else None
    read = model.scalar_read(call) if heat is not None else None
    if heat is None or read is None:
        return
    is_kept = read.tensor is not None and model.is_kept_on_host(read.tensor)
    on_cpu = is_kept or not model.may_be_on_accelerator(read.value, heat)
    if rule.silent("on-cpu", on_cpu) or rule.silent("data-worker", heat.role is Role.DATA):
        return
    if rule.silent("asked", model.decisions.is_asked_before(read.tensor, call) or model.conditions.is_tested(call)):
        return
    known = not heat.trains and read.tensor is not None and model.hoistable.is_known_within(read.tensor, heat.root)
    chooses = model.decisions.is_asked_by_loop(call, heat.root) or model.host_reads.may_choose(read)
    decides = heat.role is Role.SAMPLING_LOOP and chooses and not known
    if rule.silent("decision", decides or model.decides(call)):
        return
    yield Finding(_place(call, model), _message(read, heat, known, model), _fix(read, heat, model), owner=call)


def _place(call: cst.Call, model: Model) -> cst.CSTNode:
    """The call, or the name of its method where the receiver goes over several lines."""
    return call.func.attr if isinstance(call.func, cst.Attribute) and "\n" in model.code(call.func) else call


def _shown(call: cst.Call, model: Model) -> str:
    what, of = model.code(call), call.func if model.qualified_name(call.func) is None else None
    if len(what) <= 60 and "\n" not in what:
        return what
    return f"(...).{of.attr.value}()" if isinstance(of, cst.Attribute) else f"{model.code(call.func)}(...)"


def _message(read: ScalarRead, heat: Heat, known: bool, model: Model) -> str:
    waits = f"`{_shown(read.call, model)}` reads a tensor's value {heat.often}: the host waits for the GPU each time."
    if read.function in ("get_scale", "state_dict"):
        return f"{waits} Ask for the scale every few steps only."
    if known:
        return f"{waits} It depends on no pass before: read it, or all values with one `.tolist()`, before the loop."
    others = model.scalar_reads(heat.root, read.call)
    several = f" Read the {others} values of a step together: `torch.stack([...]).tolist()` waits once."
    if model.decisions.sizes(read.call):
        return f"{waits} A size cannot stay on the device: take it from a shape, or from numbers that the host keeps."
    if heat.role is Role.ELEMENTS:
        return (
            f"{waits} Read all of them together with one `.tolist()` before the loop, or compute on the whole tensor."
        )
    when = "once after the loop" if isinstance(heat.root, LOOPS) else "after the loop that calls this"
    kept = f"{waits} Keep the value a tensor (`.detach()`) and read it {when}, or every few steps."
    return f"{kept}{several}" if others > 1 else kept


def _fix(read: ScalarRead, heat: Heat, model: Model) -> Fix | None:
    if not isinstance(heat.root, cst.For) or model.device_context(read.call):
        return None
    found = model.accumulation(read.call, heat.root)
    if found is None or read.tensor is None:
        return None
    conversion = _conversion(found, model.spelling("torch.is_tensor", heat.root))
    if conversion is None or (found.cast == "double" and model.vocabulary.mentions_mps):
        return None  # MPS has no float64
    kept = "detach().reshape(()).clone" if found.is_list else f"detach().{found.cast}" if found.cast else "detach"
    double = (
        " (float64, which MPS does not have; CUDA can round a division differently)" if found.cast == "double" else ""
    )
    return Fix(
        f"Accumulate `{found.name}` as a tensor and convert it once after the loop",
        (
            _keep(read.call, read.tensor, kept, model),
            InsertAfter(heat.root, (conversion,)),
        ),
        Safety.UNSAFE,
        f"`{found.name}` holds {'tensors' if found.is_list else 'a tensor'} while the loop runs{double}.",
        min(read.value.evidence, Evidence.INFERRED),
    )


def _keep(call: cst.Call, tensor: cst.BaseExpression, method: str, model: Model) -> Replace:
    if isinstance(call.func, cst.Attribute) and call.func.value is tensor:
        return Replace(call.func.attr, method)
    return Replace(call, f"{_primary(tensor, model)}.{method}()")


def _primary(tensor: cst.BaseExpression, model: Model) -> str:
    """The code of an expression to which a method call can be appended."""
    text = model.code(tensor)
    binds = isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and "\n" not in text
    return text if binds or tensor.lpar else f"({text})"


def _conversion(found: Accumulation, is_tensor: str | None) -> str | None:
    name = found.name
    if found.is_list:
        return f"{name}[:] = [{f'{found.total}(value)' if found.total else 'value.item()'} for value in {name}]"
    if found.total:
        return f"{name} = {found.total}({name})"
    return f"{name} = {name}.item() if {is_tensor}({name}) else {name}" if is_tensor is not None else None
