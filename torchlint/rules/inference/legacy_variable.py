"""A tensor is wrapped in `Variable`, which only cuts it off its graph.

## Why it costs

Tensors record gradients themselves since torch 0.4. `Variable(t)` has been a way to make another tensor on the same
memory since then, without graph and without `requires_grad`, also where `t` has them: a loss computed from
`Variable(output)` trains nothing, and no error says so. `volatile=True`, which once kept inference from building a
graph, has no effect but a warning: the graph is built, and its memory is needed.

## What to write instead

The tensor itself; `t.detach()` where the graph is to be cut; `t.detach().requires_grad_()` for
`Variable(t, requires_grad=True)`; `with torch.no_grad():` around the computation for `volatile=True`.

The fix drops the wrapper around tensors that carry no graph: factories, `.data`, `.detach()`, batches of a loader. It
is safe where a factory makes the tensor in place, of numbers and not of other tensors, and `requires_grad` is written
out. A name that goes on to be used would be one tensor with the new one, so that it is unsafe there. Everywhere else
the fix writes `.detach()`, which computes what is computed now; it is unsafe, since a subclass of `torch.Tensor` stays
what it is. There is none for `volatile=True`.

## When to ignore it

Never, in code for a torch that is still supported. What runs only with older ones (after a test of the version) is not
reported, and neither is `isinstance(x, Variable)`, which is right for every tensor.

Read in "Autograd", "Variable (deprecated)" of torch 2.13 and tried with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.edits.operations import Edit, RemoveStatement, Replace, Unwrap
from torchlint.edits.receivers import as_receiver
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tensors.fresh import COPYING, is_made, may_hold_a_graph, steps_of
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax.assignments import pairs
from torchlint.syntax.calls import is_none, literal
from torchlint.syntax.canonical import is_same

NAME = "torch.autograd.Variable"
ONE_TENSOR = "Both names are one tensor then: what is set on one of them shows on the other."
NUMBER = "`requires_grad_` takes True and False only, and refuses other numbers."
MAPPED = "`requires_grad_` fails in a function that `torch.func` transforms, as `vmap` does."
SUBCLASS = "A subclass of `torch.Tensor` stays one, where `Variable` makes a plain tensor."

rule = Rule(
    code="TL504",
    name="legacy-variable",
    family=Family.INFERENCE,
    since="0.1.0",
    default=Default.ON,
    summary="`Variable(...)`, which only cuts the graph, or `volatile=True`, which does nothing",
    triggers=Triggers.all_of("Variable"),
    examples=(
        Example(
            bad="import torch\nfrom torch.autograd import Variable\n\nnoise = Variable(torch.randn(8, 2))\n",
            good="import torch\n\nnoise = torch.randn(8, 2)\n",
        ),
        Example(
            bad="from torch.autograd import Variable\n\ndef leaf(x):\n    return Variable(x, requires_grad=True)\n",
            good="def leaf(x):\n    return x.detach().requires_grad_()\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated",),
    documentation=__doc__,
    silences={
        "other-name": "The name means something else: of another library, or of the project.",
        "not-made": "The name is only asked for: in a type test, an annotation, an import.",
        "version": "The code runs only with some versions of torch.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    in_tests=True,
    about_speed=False,
)


class Wrapped(NamedTuple):
    """A tensor that a call wraps, and what is known of it."""

    call: cst.Call
    tensor: cst.BaseExpression
    grad: str
    """The method call that switches gradients on as the call does, empty where it leaves them off."""

    new: bool
    """Whether nothing else holds the tensor."""

    detached: Evidence | None
    """How certain it is that the tensor has no graph, and is no subclass."""


@rule.check(cst.Call, called=(NAME,))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call of ``Variable``."""
    if model.callee(call) != NAME or rule.silent("version", depends_on_version(call, model)):
        return
    found = _wrapped(call, model)
    yield Finding(call, _message(call, found, model), _fix(found, model))


def _is_volatile(call: cst.Call, model: Model) -> bool:
    switch = model.arguments(call).get("volatile")
    return switch is not None and literal(switch) is not False


def _wrapped(call: cst.Call, model: Model) -> Wrapped | None:
    """Return what a call wraps, None where stars or a partial call hide it, and of what was volatile."""
    given = model.arguments(call)
    tensor, switch = given.get("data"), given.get("requires_grad")
    is_plain = switch is None or model.is_plain(switch)
    if tensor is None or given.open or given.extra or model.is_partial(call) or not is_plain:
        return None
    grad = _switched(switch, model)
    if grad is None or _is_volatile(call, model):
        return None
    value = model.value(tensor)
    steps, start = steps_of(tensor)
    to = model.enclosing(call, cst.Assign) if not is_made(start, model) else None  # nothing else holds what is made
    named = (start, *(target for target, value in pairs(to) if value is call)) if to is not None else (start,)
    is_switched = any(model.evaluator.usage.attributes(each) & {"requires_grad", "requires_grad_"} for each in named)
    known = value.kind in (Kind.TENSOR, Kind.BATCH) and value.graph is Graph.DETACHED and not is_switched
    known = known and not may_hold_a_graph(start, model)
    cut = Evidence.INFERRED if steps & {"detach", "data"} else None
    evidence = value.evidence if known and value.evidence >= Evidence.INFERRED else cut
    evidence = min(evidence, Evidence.INFERRED) if evidence is not None and not is_made(tensor, model) else evidence
    return Wrapped(call, tensor, grad, is_made(start, model) or bool(steps & COPYING), evidence)


def _switched(switch: cst.BaseExpression | None, model: Model) -> str | None:
    """Return the method call that switches gradients on, empty where they stay off, None where torch refuses."""
    flag = literal(switch)
    if switch is None or (isinstance(flag, int) and not flag):
        return ""
    if isinstance(flag, int):
        return ".requires_grad_()"
    return None if flag is not None or is_none(switch) else f".requires_grad_({model.code(switch)})"


def _message(call: cst.Call, found: Wrapped | None, model: Model) -> str:
    name = model.code(call.func)
    if _is_volatile(call, model):
        return (
            f"`volatile` of `{name}` has had no effect since torch 0.4: the graph is built all the same. Run the "
            "computation in `with torch.no_grad():` and use the tensor as it is."
        )
    if found is not None and found.grad:
        return (
            f"`{name}` makes a leaf on the memory of the tensor, which tensors do themselves since torch 0.4. "
            f"Write `{'' if found.new and found.detached else '.detach()'}{found.grad}`."
        )
    if found is not None and found.detached:
        return f"`{name}` around a tensor without graph does nothing since torch 0.4. Use the tensor as it is."
    shown = model.shown(found.tensor if found else None, "a tensor")
    return (
        f"Since torch 0.4 `{name}` only cuts {shown} off its graph, if there is one. Use the tensor as it is, or "
        "`.detach()` where that is meant."
    )


def _fix(found: Wrapped | None, model: Model) -> Fix | None:
    if found is None:
        return None
    keeps = found.detached is not None and (found.new or not found.grad)
    edits = _dropped(found, model)
    if found.grad or not keeps:
        edits = (Replace(found.call, as_receiver(found.tensor, model) + ("" if keeps else ".detach()") + found.grad),)
    message = f"Write `{'' if keeps else '.detach()'}{found.grad}`" if found.grad or not keeps else "Use the tensor"
    if found.new and found.detached is Evidence.PROVEN:
        why = NUMBER if found.grad not in ("", ".requires_grad_()") else MAPPED if found.grad else ""
        return Fix(message, edits, Safety.UNSAFE, why, Evidence.INFERRED) if why else Fix(message, edits, Safety.SAFE)
    return Fix(message, edits, Safety.UNSAFE, ONE_TENSOR if keeps and not found.new else SUBCLASS, Evidence.INFERRED)


def _dropped(found: Wrapped, model: Model) -> tuple[Edit, ...]:
    """Return the edits that drop a wrapper, with the statement where it would assign names to themselves."""
    statement = model.enclosing(found.call, cst.Assign)
    given = pairs(statement) if statement is not None else []
    is_idle = all(_is_idle(target, value, found, model) for target, value in given)
    if statement is not None and is_idle and any(value is found.call for _, value in given):
        return (RemoveStatement(statement),)
    return (Unwrap(found.call, found.tensor),)


def _is_idle(target: cst.BaseExpression, value: cst.BaseExpression, found: Wrapped, model: Model) -> bool:
    """Return whether a part of an assignment gives a name what it has: itself, or wrapped like what is found."""
    if not isinstance(value, cst.Call) or model.callee(value) != NAME:
        return is_same(target, value)
    other = found if value is found.call else _wrapped(value, model)
    if other is None or other.detached is None or other.grad or found.detached is None:
        return False
    return is_same(target, other.tensor) and (other.new, other.detached) >= (found.new, found.detached)
