"""Gradients of several mean losses are added up, and nothing divides them by their number.

The optimizer steps, and gradients are dropped, once for several passes of the loop (`if (i + 1) % steps == 0`), each of
which runs `backward()` on a mean.

## Why it costs

The gradient of the mean over a large batch is the mean of the gradients of its parts. Their sum is `steps` times as
long: with SGD that is a learning rate `steps` times as high, with Adam other weight decay and epsilon, and clipping by
norm cuts almost every step. The number of passes then changes the training, though it is meant to change memory only.

## What to write instead

```python
loss = criterion(model(x), y) / steps
loss.backward()
```

Log the loss before the division. Where the last step of an epoch has fewer passes, its gradients are divided by too
much: drop these batches, or divide by what is left.

## When to ignore it

Where the learning rate was chosen for the sum, or a loss is meant to weigh by the number of samples.

Holds for all supported versions of torch. Read in "Gradient accumulation" of the AMP examples of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.heat.guards import Guard
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import LOSS_CLASSES, LOSS_FUNCTIONS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

FRAMEWORKS = ("accumulate", "manual_backward", "prepare", "Accelerator", "Fabric", "LightningModule", "deepspeed")
SUMS = frozenset(("reduction", "size_average", "reduce"))
SCALING = (cst.Divide, cst.DivideAssign, cst.Multiply, cst.MultiplyAssign)
MAX_DEPTH = 6

rule = Rule(
    code="TL305",
    name="accumulation-not-scaled",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ADVICE,
    summary="accumulated gradients of mean losses are not divided by their number",
    triggers=Triggers.all_of("backward", "step", "zero_grad"),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer, steps):
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation",),
    documentation=__doc__,
    silences={
        "scaled": "The loss, the gradients or the learning rate are divided, or something is divided by the number.",
        "every-pass": "Gradients are dropped or used in each pass, or the loss belongs to a part of the passes only.",
        "no-mean": "The loss is a sum, or nothing shows that it is a mean.",
        "framework": "A framework accumulates, and may divide.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.For)
def check(loop: cst.For, model: Model) -> Iterator[Finding]:
    """Report the backward pass of a loop that accumulates the gradients of means."""
    calls = [call for call in model.descendants(loop.body) if isinstance(call, cst.Call)]
    passes = [call for call in calls if method_call(call, "backward") is not None]
    if len(passes) != 1 or model.enclosing(passes[0], cst.For, cst.While, cst.FunctionDef) is not loop:
        return
    period = _period(calls, loop, model)
    if period is None or rule.silent("every-pass", model.guard(passes[0], loop) is not None):
        return
    if rule.silent("framework", _has_framework(loop, model)):
        return
    if rule.silent("no-mean", not _is_mean(passes[0], loop, model)) or rule.silent("scaled", _scales(period, model)):
        return
    if rule.silent("test", model.in_test(loop)):
        return
    count = model.shown(period, "the number of passes")
    yield Finding(
        passes[0],
        "The gradients of several means are added up and not divided: a step is as many times longer as passes come "
        f"before it. Divide the loss by {count} before this.",
    )


def _has_framework(loop: cst.For, model: Model) -> bool:
    """Whether the function around a loop speaks of a framework that accumulates."""
    frame = model.enclosing_function(loop) or model.tree.module
    return any(
        identifier(n) in FRAMEWORKS for n in model.descendants(frame) if isinstance(n, (cst.Name, cst.Attribute))
    )


def _period(calls: list[cst.Call], loop: cst.For, model: Model) -> cst.BaseExpression | None:
    """Return for how many passes a loop accumulates: the optimizer steps, and gradients are dropped, once for them."""
    acts = [call for call in calls if method_call(call, "zero_grad") is not None or _is_step(call, model)]
    names = {identifier(call.func) for call in acts}
    if names != {"step", "zero_grad"}:
        return None
    if rule.silent("every-pass", any(model.guard(call, loop) is not Guard.PERIODIC for call in acts)):
        return None
    test = next((a.test for a in model.ancestors(acts[0]) if isinstance(a, cst.If)), None)
    below = model.descendants(test) if test is not None else iter(())
    modulo = (n for n in below if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Modulo))
    return next((node.right for node in modulo), None)


def _is_step(call: cst.Call, model: Model) -> bool:
    method = method_call(call, "step")
    return method is not None and model.value(method.value).kind in (Kind.OPTIMIZER, Kind.SCALER)


def _is_mean(backward: cst.Call, loop: cst.For, model: Model) -> bool:
    """Whether what a backward pass starts from is a mean, computed in the same pass of the loop."""
    method = method_call(backward, "backward")
    if method is None or any(argument.keyword is None for argument in backward.args) or _speaks_of_sums(model):
        return False
    start = method.value
    scaled = method_call(start, "scale")
    if isinstance(start, cst.Call) and scaled is not None and len(start.args) == 1:
        start = start.args[0].value
    return _computes_mean(start, loop, model, 0)


def _computes_mean(expression: cst.BaseExpression, loop: cst.For, model: Model, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(expression, cst.Name):
        bindings = model.reaching(expression)
        plain = all(b.kind is BindingKind.ASSIGNMENT and not b.path and model.within(b.node, loop) for b in bindings)
        values = [b.value for b in bindings if b.value is not None]
        return plain and bool(values) and all(_computes_mean(v, loop, model, depth + 1) for v in values)
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Add):
        return all(_computes_mean(side, loop, model, depth + 1) for side in (expression.left, expression.right))
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Multiply):
        return literal(expression.left) is not None and _computes_mean(expression.right, loop, model, depth + 1)
    if not isinstance(expression, cst.Call):
        return False
    name = model.qualified_name(expression.func)
    if name in LOSS_FUNCTIONS or name == "torch.mean" or model.value(expression.func).name in LOSS_CLASSES:
        return True
    return name is None and method_call(expression, "mean") is not None and not expression.args


def _speaks_of_sums(model: Model) -> bool:
    """Whether some loss of the file is told to be no mean."""
    told = (a for a in model.nodes(cst.Arg) if a.keyword is not None and a.keyword.value in SUMS)
    return any(literal(argument.value) != "mean" for argument in told)


def _scales(period: cst.BaseExpression, model: Model) -> bool:
    """Whether something in the file is divided by a number of passes, or gradients are divided."""
    operations = ((n.operator, n.left, n.right) for n in model.nodes(cst.BinaryOperation))
    changes = ((n.operator, n.target, n.value) for n in model.nodes(cst.AugAssign))
    for operator, scaled, factor in chain(operations, changes):
        if isinstance(operator, SCALING) and (is_same(factor, period) or "grad" in identifier(scaled)):
            return True
    return model.speaks_of("div_", "mul_")
