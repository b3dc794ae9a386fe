"""A loss is given the wrong activation: a sigmoid that it could or does apply itself, or a softmax without a logarithm.

Sigmoid before `F.binary_cross_entropy` or `nn.BCELoss`, sigmoid before `F.binary_cross_entropy_with_logits` or
`nn.BCEWithLogitsLoss`, and softmax before `F.nll_loss` or `nn.NLLLoss`, also where the forward pass of a model ends
with them.

## Why it costs

A float32 sigmoid is exactly 1 from 17 on, and its gradient 0: with `BCELoss` such a prediction learns nothing more,
however wrong it is, and its loss is cut off at 100. `BCEWithLogitsLoss` computes both at once and keeps the gradient;
it is also the one that mixed precision on CUDA allows, where `BCELoss` raises. Given a sigmoid it applies another one,
so that no prediction is below 0.5 or above 0.74. `NLLLoss` wants logarithms: given probabilities it is only the
negative mean probability of the right class (torch 2.13, and its notes on mixed precision).

## What to write instead

`F.binary_cross_entropy_with_logits(x, y)` on the scores; `F.nll_loss(F.log_softmax(x, dim=1), y)`, or
`F.cross_entropy(x, y)`. Apply the sigmoid where probabilities are shown.

The fix is there where the sigmoid stands in the call of the loss and nothing writes to the scores. It is unsafe: the
result is more exact, so it is not the same number.

## When to ignore it

Where probabilities are what the model must give, and `BCELoss` the only place that could take scores.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.edits.renaming import from_root
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.operators.activations import Activation, Fed, activation, fed
from torchlint.semantics.operators.operands import applied

WITH_LOGITS = "binary_cross_entropy_with_logits"
WRONG = {
    ("binary_cross_entropy", "sigmoid"): "where the sigmoid rounds to 0 or 1 nothing is learned any more, and mixed "
    "precision refuses it. Give the scores to `BCEWithLogitsLoss`.",
    (WITH_LOGITS, "sigmoid"): "the loss applies a sigmoid itself, so that predictions stay between 0.5 and 0.74. Give "
    "it the scores.",
    ("nll_loss", "softmax"): "the loss wants logarithms, and gives the negative mean probability. Use `log_softmax`.",
}

rule = Rule(
    code="TL414",
    name="sigmoid-before-bce",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a sigmoid before a binary cross entropy, or a softmax before `NLLLoss`",
    triggers=Triggers.all_of(
        ("sigmoid", "Sigmoid", "softmax", "Softmax", "Softmax2d", "expit"),
        ("binary_cross_entropy", WITH_LOGITS, "BCELoss", "BCEWithLogitsLoss", "nll_loss", "NLLLoss"),
    ),
    examples=(
        Example(
            bad="import torch.nn.functional as F\n\nloss = F.binary_cross_entropy(F.sigmoid(x), y)\n",
            good="import torch.nn.functional as F\n\nloss = F.binary_cross_entropy_with_logits(x, y)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html",
        "https://docs.pytorch.org/docs/stable/amp.html#prefer-binary-cross-entropy-with-logits-over-binary-cross-entropy",
    ),
    documentation=__doc__,
    silences={
        "targets": "The activation is that of the target.",
        "other-activation": "What the loss is given went through the right activation, through none, or is not known.",
        "either-way": "The model ends with the activation on some ways through it only, such as in evaluation.",
        "other-loss": "The loss is another one, or nothing says what it is.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a loss that is given the wrong activation."""
    given = fed(call, model)
    if given is None:
        return
    found = activation(given.predictions, model)
    if found is None or found.evidence is Evidence.NAMED:
        return
    wrong = WRONG.get((given.loss, found.name))
    if wrong is None:
        return
    yield Finding(call, f"{_origin(found, model)}: {wrong}", _fix(call, given, found, model))


def _origin(found: Activation, model: Model) -> str:
    if found.owner is not None:
        return f"The forward pass of `{found.owner.name.value}`, which the loss is given, ends with a {found.name}"
    return f"The loss is given the output of {model.shown(found.call, f'a {found.name}')}"


def _fix(call: cst.Call, given: Fed, found: Activation, model: Model) -> Fix | None:
    """Return the fix that hands on the scores, if activation and loss stand in one expression."""
    scores = applied(found.call, "sigmoid", model)
    if not found.direct or not given.is_function or given.loss != "binary_cross_entropy" or scores is None:
        return None
    if not isinstance(call.func, (cst.Name, cst.Attribute)) or model.writes.may_break_backward(call, (scores.operand,)):
        return None
    new = from_root(call.func, f"torch.nn.functional.{WITH_LOGITS}", model)
    if new is None:
        return None
    return Fix(
        f"Use `{WITH_LOGITS}`",
        (Replace(call.func, new.code), Replace(found.call, model.code(scores.operand)), *new.imports),
        Safety.UNSAFE,
        "The result is more exact, so it is not the same number.",
        scores.evidence,
    )
