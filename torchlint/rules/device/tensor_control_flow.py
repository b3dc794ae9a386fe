"""Python branches on the value of a tensor on every step.

## Why it costs

`if tensor:`, `while tensor > 0:`, `assert (x == y).all()` call `bool(tensor)`, which needs the value on the host: the
host waits until everything queued before has run. `max(best, loss)`, `sorted(losses)` and `any(checks)` of Python do so
for each value. Under `torch.compile` each such branch is a graph break. That holds for each call of a function of a
library, too, that takes tensors and returns them, as its annotations say, and of a loop that tests one element of a
tensor after the other, whoever calls its function, unless it visibly does so only now and then.

## What to write instead

Keep the decision on the device: `torch.where(condition, a, b)`, `tensor.clamp(min=0)`, `torch.maximum(a, b)`, a mask
that multiplies, or `torch._assert_async` for checks. Check for NaN every few steps, with the periodic test first:
`if step % 100 == 0 and torch.isnan(loss):`. What is known before a loop, such as the times of a diffusion process, is
compared before it. There is no automatic fix.

## When to ignore it

The branch chooses between programs that have no common tensor form, and runs rarely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evaluate.unknown_calls import from_tensor
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import NO_OPTION, Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.names import BUILT_ON_TORCH
from torchlint.semantics.values import Kind, Origin, Value, tensor
from torchlint.syntax.calls import method_call

_KEEP = "Keep the decision on the device (`torch.where`, a mask), or test every few steps only."
_KNOWN = "It is known before: decide for all passes at once (`.tolist()`), before the loop."
_EACH = "Read all of them with one `.tolist()` before the loop, or compare the whole tensor at once (a mask)."
_COMPARING = {
    "max": ("maximum", "min=...", "max()"),
    "min": ("minimum", "max=...", "min()"),
    "sorted": ("", "", "sort()"),
    "any": ("", "", "any()"),
    "all": ("", "", "all()"),
}
"""What to write instead: for two tensors, for a tensor and a number, for many of them."""

_ONE_BY_ONE = (Role.ELEMENTS, Role.DENOISING)
"""Where the larger of two values may well be one that the host has."""

_REDUCING = ("max", "min", "sum", "mean", "norm")
_HOLDING = (Kind.SEQUENCE, Kind.ITERATOR)
_HELD = (cst.Name, cst.Attribute)
"""What may be None as well: ``mask or other`` asks for that."""

rule = Rule(
    code="TL204",
    name="tensor-control-flow",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="`if`, `while`, `assert`, `and`, `or`, `not` or `max` on a tensor's value on every step",
    triggers=Triggers.all_of(BUILT_ON_TORCH),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        if torch.isnan(loss):
            continue
        loss.backward()
        optimizer.step()
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "https://docs.pytorch.org/docs/stable/compile/programming_model.common_graph_breaks.html",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The test does not run on every step.",
        "guarded": "A periodic test or a flag for looking into a run (`debug`) comes before it.",
        "no-tensor": "What is tested is no tensor: numbers, shapes, `None`, `isinstance`, `.item()` (TL202's).",
        "existence": "A parameter is tested on its own: that asks whether the layer has one.",
        "on-cpu": "The tensor is known to live on the CPU, or nothing in the file computes on an accelerator.",
        "uncertain": "That it is a tensor, or tested on every step, is only guessed.",
        "decision": "A loop that runs a model, without taking batches, ends by it, or goes on by it as a search does.",
        "size": "The larger or smaller of two values is a size, which the host needs.",
        "data-worker": "It runs in a dataset or a collate function, where tensors live on the CPU.",
    },
)


@rule.check(cst.If, cst.IfExp, cst.While, cst.Assert, cst.CompIf)
def check(node: cst.If | cst.IfExp | cst.While | cst.Assert | cst.CompIf, model: Model) -> Iterator[Finding]:
    """Report the tensor of which a statement tests the truth."""
    operands = list(model.conditions.tested(node.test))
    if not operands or (model.heat(node.test, NO_OPTION) or model.tensor_functions.of_branch(node.test)) is None:
        return
    yield from _first(operands, model)


@rule.check(cst.BooleanOperation, cst.UnaryOperation)
def combined(node: cst.BooleanOperation | cst.UnaryOperation, model: Model) -> Iterator[Finding]:
    """Report the first tensor whose truth `and`, `or` or `not` ask for where no statement tests it."""
    yield from _first([part for part in model.conditions.asked(node) if not isinstance(part, _HELD)], model)


def _first(operands: Iterable[cst.BaseExpression], model: Model) -> Iterator[Finding]:
    """Yield the finding of the first operand that is a tensor on the device."""
    for operand in operands:
        value = _of(operand, model)
        exists = isinstance(operand, _HELD) and value.origin is Origin.PARAMETER
        heat = None if rule.silent("existence", exists) else _waits(operand, value, model)
        if heat is not None:
            known = not heat.trains and model.hoistable.is_known(operand, heat.root)
            instead = _EACH if heat.role is Role.ELEMENTS else _KNOWN if known else _KEEP
            yield Finding(
                operand,
                f"Python branches on the value of the tensor `{model.code(operand)}` {heat.often}: `bool()` "
                f"makes the host wait for the GPU. {instead}",
            )
            return


def _of(operand: cst.BaseExpression, model: Model) -> Value:
    """What is tested; ``mask.any()`` is a tensor where an unknown function made the mask of tensors."""
    value, asked = model.value(operand), method_call(operand, "any", "all")
    if isinstance(operand, cst.Comparison):
        asked = method_call(operand.left, *_REDUCING)
    computed = asked is not None and from_tensor(asked.value, model.evaluator)
    computed = computed or (isinstance(operand, cst.Comparison) and model.conditions.may_be_tensor(operand))
    return tensor(Evidence.INFERRED) if computed and not value.known else value


@rule.check(cst.Call, called=tuple(_COMPARING))
def compared(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report `max`, `min`, `sorted`, `any` and `all` of Python, which look at tensors one by one."""
    name = (model.callee(call) or "").removeprefix("builtins.")
    given = [model.value(a.value) for a in call.args if a.keyword is None and not a.star]
    if name not in _COMPARING or not given or len(given) < len(call.args):
        return
    values = given if len(given) > 1 else [given[0].iterated()] if given[0].kind in _HOLDING else []
    tensor = next((value for value in values if value.is_tensor), None)
    heat = _waits(call, tensor, model) if tensor is not None else None
    if heat is None or heat.role in _ONE_BY_ONE or rule.silent("size", model.decisions.sizes(call)):
        return
    yield Finding(
        call,
        f"Python looks at tensors one by one in `{model.code(call)}` {heat.often}: each `bool()` makes the host wait "
        f"for the GPU. Write `{_instead(name, given)}`, which stays on the device, or do it every few steps only.",
    )


def _instead(name: str, given: list[Value]) -> str:
    of_two, of_number, of_many = _COMPARING[name]
    if len(given) == 1:
        return f"torch.stack(...).{of_many}"
    return f".clamp({of_number})" if any(v.kind is Kind.NUMBER for v in given) else f"torch.{of_two}(...)"


def _waits(operand: cst.BaseExpression, value: Value, model: Model) -> Heat | None:
    """Return where the truth of a value is asked on every step, None unless that is a tensor on the device."""
    heat = model.heat(operand, NO_OPTION) or model.tensor_functions.of_branch(operand) if value.is_tensor else None
    if heat is None or rule.silent("data-worker", heat.role is Role.DATA):
        return None
    is_guessed = heat.role is Role.SAMPLING_LOOP and heat.evidence < Evidence.INFERRED
    is_guessed = is_guessed or value.evidence < Evidence.INFERRED or model.conditions.may_be_absent(operand)
    if rule.silent("uncertain", is_guessed):
        return None
    on_cpu = not model.may_be_on_accelerator(value, heat) or model.is_kept_on_host(operand)
    if rule.silent("on-cpu", on_cpu):
        return None
    known = not heat.trains and model.hoistable.is_known(operand, heat.root)
    ends = heat.role is Role.SAMPLING_LOOP and not known and model.decisions.is_asked_by_loop(operand, heat.root)
    return None if rule.silent("decision", ends) else heat
