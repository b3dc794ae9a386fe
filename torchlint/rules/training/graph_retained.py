"""A value that carries its autograd graph is kept from step to step.

## Why it costs

A tensor that was computed from parameters holds the graph that led to it. `total += loss` adds a node to a chain that
grows with every step, `losses.append(loss)` and `[step(x) for x in loader]` keep every graph alive, and a sum or list
over an evaluation loop keeps all activations of all its steps too, since no backward pass has freed them. So does the
buffer or list of a rollout, `values[step] = critic(x)`, of which later only `values.detach()` is read, until it is made
anew, the history of a callback that is handed the loss, and the sum over the micro-batches of one step, if each is
backpropagated by itself: that one is small, and as easily detached. A recurrent state that goes from step to step
(`output, hidden = model(x, hidden)`) brings the graph of all steps before, and `retain_graph=True`, without which the
second backward pass fails, keeps it. An average of the parameters, or of what a layer is given (`self.running_mean`),
that is updated with gradients on carries the graph of all updates before. What a model keeps of each forward pass
(`self.terms.append(term)`) stays as well, if the term is part of a loss that this file differentiates, and so does what
a queue, a pool or a hook keeps, if all that reads it detaches it first or records no gradients.

## What to write instead

`total += loss.detach()`, and read the value once after the loop (`.item()` in each step would make the host wait for
the device). Where a method keeps what it is given, the place is the method if it knows that it keeps a tensor
(`self.smooth(loss)`, `scores.step(logits, loss)`), and the call if it takes any number (`meter.update(value)`). The fix
adds `.detach()`, but for what may be a number or None on some ways (`else: penalty = 0`). It is unsafe only in that
the value that is kept no longer carries a graph.

## When to ignore it

The sum is backpropagated where this file does not show it (truncated backpropagation through time, meta-learning).

A metric of Ignite that collects predictions is reported as well: one that a trainer updates is given them with their
graph (what `update` computes of them has none). A value that replaces that of the last step (`self.loss = loss`) is not
reported: one graph is alive at a time. Holds for all supported versions of torch; read in the FAQ and in the
documentation of `Tensor.detach` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model

if TYPE_CHECKING:
    from torchlint.semantics.retention.stores import Keeping, Retention


rule = Rule(
    code="TL302",
    name="graph-retained",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ON,
    summary="a loss or output is accumulated with its autograd graph",
    triggers=Triggers.all_of(("torch", "speechbrain", "fairseq")),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss
    return total
""",
            good="""
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html",
    ),
    documentation=__doc__,
    silences={
        "backpropagated": "The sum or list flows into a backward pass.",
        "detached": "The value carries no graph: `.item()`, `.detach()`, `.data`, `float()`, computed without "
        "gradients.",
        "not-kept": "The variable, or the element of it, is made anew in each pass, so nothing outlives the step.",
        "no-loop": "It is not in a loop over steps.",
        "unclear": "Nothing shows that each step is complete in itself: a caller may backpropagate what is returned.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
)


@rule.check(cst.AugAssign, cst.Assign, cst.Call, condition=lambda model: model.retentions.occur)
@rule.check(cst.ListComp, cst.GeneratorExp, condition=lambda model: model.retentions.occur)
def check(node: Keeping, model: Model) -> Iterator[Finding]:
    """Report a value with a graph that a loop over steps accumulates."""
    kept = model.retentions.retention(node)
    if kept is None or not kept.values:
        return
    if rule.silent("backpropagated", kept.is_backpropagated) or rule.silent("unclear", not kept.step_is_complete):
        return
    if rule.silent("not-kept", kept.is_remade):
        return
    first = kept.values[0]
    name, value = model.code(kept.variable), model.code(first.with_changes(lpar=(), rpar=()))
    what, whose, cure = f"`{value}`", "its", f"Write `{_detached(first, model)}`"
    if kept.is_part:
        what, cure = f"a part of `{value}`", "Unpack it into a variable, store that with `.detach()`"
    if kept.is_record:
        what, whose = f"the tensors in `{value}`", "their"
        cure = f"Keep of `{value}` what you need, with `.detach()`"
    elif (other := model.retentions.detachable.maybe_number(kept)) is not None:
        cure = f"Write `{_detached(other, model)}` where it is a tensor (it may be a number or None here)"
    then = ": nobody reads its graph" if kept.is_only_read_detached else ", and read the value once after the loop"
    yield Finding(
        node,
        f"`{name}` keeps {what} with {whose} autograd graph from step to step, so that memory grows with every step. "
        f"{cure}{then}.",
        _fix(kept, model),
    )


@rule.check(cst.Call, condition=lambda model: model.retentions.metric_states.occur)
def check_metric(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a prediction with its graph that a metric of Ignite collects."""
    kept = model.retentions.metric_states.kept(call)
    if kept is not None:
        value = kept.values[0]
        yield Finding(
            call,
            f"`{model.code(kept.variable)}` keeps `{model.code(value)}` with its autograd graph where a trainer "
            f"updates the metric: memory then grows with every step. Write `{_detached(value, model)}`.",
        )


@rule.check(cst.Assign, condition=lambda model: model.retentions.carried_states.occur)
def check_state(statement: cst.Assign, model: Model) -> Iterator[Finding]:
    """Report a recurrent state that is carried on with the graph of all passes before."""
    found = model.retentions.carried_states.state(statement)
    if found is not None:
        state = model.code(found.variable)
        then = "" if found.is_shared else " and drop `retain_graph=True`"
        yield Finding(
            found.place,
            f"`{state}` goes into `{model.code(found.call.func)}` with the graph of all steps before, which "
            "`retain_graph=True` keeps: memory and the time of a backward pass grow with every step. Detach it after "
            f"the step (`{state} = {state}.detach()`, each part of a tuple){then}.",
        )


@rule.check(cst.Assign, cst.Call, condition=lambda model: model.retentions.averages.occur)
def check_average(node: cst.Assign | cst.Call, model: Model) -> Iterator[Finding]:
    """Report an average, of parameters or of a module's input, that keeps the graph of all averages before."""
    found = model.retentions.averages.kept(node)
    if found is not None:
        kept, of_input = found
        cure = (
            f"Write `{_detached(kept.values[0], model)}`" if of_input else "Decorate the method with `@torch.no_grad()`"
        )
        yield Finding(
            node,
            f"`{model.code(kept.variable)}` is computed of `{model.code(kept.values[0])}` with gradients on: each "
            f"average keeps the graph of all before it, so that memory grows with every update. {cure}.",
        )


def _detached(value: cst.BaseExpression, model: Model) -> str:
    code = model.code(value.with_changes(lpar=(), rpar=()))
    simple = isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    return f"{code}.detach()" if simple else f"({code}).detach()"


def _fix(kept: Retention, model: Model) -> Fix | None:
    if kept.is_part or kept.is_record:
        return None
    detachable = model.retentions.detachable
    if detachable.starts_with_graph(kept) or detachable.maybe_number(kept) is not None:
        return None
    return Fix(
        "Detach the value that is kept",
        tuple(Replace(value, _detached(value, model)) for value in kept.values),
        Safety.UNSAFE,
        "The value that is kept no longer carries a graph.",
        min(kept.evidence, Evidence.INFERRED),
    )
