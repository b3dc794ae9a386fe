"""Probabilities are given to a loss that computes the softmax itself, or a logarithm is taken of a softmax.

`F.cross_entropy(F.softmax(x, dim=1), y)`, `nn.CrossEntropyLoss()(model(x), y)` where the forward pass of the model ends
with a softmax, and `torch.log(F.softmax(x, dim=1))`.

## Why it costs

The cross entropy of torch takes scores and applies log-softmax to them. Of probabilities, which lie between 0 and 1,
the second softmax is nearly uniform: with 10 classes a certain and right prediction still has a loss of 1.46, the
gradients are small, and training is slow or stops early. The logarithm of a softmax is -inf where the softmax rounds to
0, and takes two passes where `log_softmax` takes one (torch 2.13).

## What to write instead

The scores themselves: `F.cross_entropy(x, y)`; apply the softmax where probabilities are shown.
`F.log_softmax(x, dim=1)` for the logarithm.

There is a fix for the logarithm, unless its result is written to, which the backward pass of `log_softmax` refuses. It
is unsafe: the result is more exact, so it is not the same number. There is none
for the loss: a model that was tuned with the second softmax trains differently without it.

## When to ignore it

Where the probabilities are sharpened again on purpose. The rule is silent about probabilities as targets, and about
`log_softmax` before the loss, which changes nothing but costs a pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.edits.renaming import from_root, spelled
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.operators.activations import Activation, activation, fed
from torchlint.semantics.operators.operands import applied

FUNCTIONAL = "torch.nn.functional."

rule = Rule(
    code="TL409",
    name="softmax-before-cross-entropy",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a softmax before the cross entropy, which applies one itself, or inside a logarithm",
    triggers=Triggers.all_of(("softmax", "Softmax", "Softmax2d"), ("cross_entropy", "CrossEntropyLoss", "log")),
    examples=(
        Example(
            bad="import torch.nn.functional as F\n\nloss = F.cross_entropy(F.softmax(x, dim=1), y)\n",
        ),
        Example(
            bad="import torch\n\ny = torch.log(torch.softmax(x, dim=1))\n",
            good="import torch\n\ny = torch.log_softmax(x, dim=1)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html",
    ),
    documentation=__doc__,
    silences={
        "targets": "The probabilities are the target, which may be probabilities.",
        "other-activation": "What the loss is given went through no softmax, or through something else after it.",
        "either-way": "The model ends with a softmax on some ways through it only, such as in evaluation.",
        "other-loss": "The loss is another one, or nothing says what it is.",
        "other-terms": "The logarithm is taken of more than the softmax.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call)
def before_loss(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report probabilities as the predictions of a cross entropy."""
    given = fed(call, model)
    if given is None or given.loss != "cross_entropy":
        return
    found = activation(given.predictions, model)
    if found is None or found.name != "softmax" or found.evidence is Evidence.NAMED:
        return
    yield Finding(
        call,
        f"{_origin(found, model)}, and `{model.code(call.func)}` applies a softmax itself: the second one flattens the "
        "probabilities and their gradients. Give it the scores.",
    )


@rule.check(cst.Call, called=("log",))
def inside_logarithm(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the logarithm of a softmax."""
    found = applied(call, "log", model)
    if found is None or found.evidence is Evidence.NAMED or len(found.arguments.named) > 1:
        return
    inner = activation(found.operand, model)
    if inner is None or inner.name != "softmax" or inner.owner is not None:
        return
    yield Finding(
        call,
        f"{model.shown(call, 'The logarithm of a softmax')} is -inf where the softmax rounds to 0, and takes two "
        "passes. `log_softmax` computes both at once.",
        _fix(call, inner, model) if inner.direct else None,
    )


def _origin(found: Activation, model: Model) -> str:
    if found.owner is not None:
        return f"The forward pass of `{found.owner.name.value}` ends with a softmax"
    return f"{model.shown(found.call, 'A softmax')} gives probabilities"


def _fix(call: cst.Call, inner: Activation, model: Model) -> Fix | None:
    scores, function = applied(inner.call, "softmax", model, "dim"), inner.call.func
    is_functional = (model.qualified_name(function) or "").startswith(FUNCTIONAL)
    name = f"{FUNCTIONAL if is_functional else 'torch.'}log_softmax"
    if is_functional and isinstance(function, (cst.Name, cst.Attribute)):
        new = from_root(function, name, model)
    else:
        new = spelled(name, call, model)
    if new is None or scores is None or scores.arguments.extra:
        return None
    if model.writes.may_break_backward(call):
        return None  # the backward pass of `log_softmax` needs its result as it was
    others = [argument for name, argument in scores.arguments.nodes.items() if name != "input"]
    shown = ", ".join(model.code(part).strip().rstrip(",").rstrip() for part in (scores.operand, *others))
    return Fix(
        "Use `log_softmax`",
        (Replace(call, f"{new.code}({shown})"), *new.imports),
        Safety.UNSAFE,
        "The result is more exact, so it is not the same number.",
        scores.evidence,
    )
