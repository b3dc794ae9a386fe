"""The logarithm is taken of values among which there can be a zero.

It is taken of numbers that `torch.rand` draws from [0, 1), of a sigmoid, or of a ReLU.

## Why it costs

`log(0)` is `-inf`, and its gradient `inf` or NaN: one such value ruins a loss, and after the next step all weights.
`torch.rand` in float32 draws an exact 0 once in some 17 million numbers, a sigmoid in float32 is 0 below -104, and 1
minus it is 0 above 17, a ReLU is 0 half of the time.

## What to write instead

`F.logsigmoid(x)` for `log(sigmoid(x))`, and `F.logsigmoid(-x)` for `log(1 - sigmoid(x))`. For noise
`torch.empty_like(x).exponential_().log()`, which is `log(-log(u))` without the zero, or `u.clamp(min=1e-20)`. Elsewhere
`x.clamp(min=eps).log()`, or `torch.log1p` where counts are meant.

## When to ignore it

Where infinities are masked out afterwards.

Holds for all supported versions of torch; tried with torch 2.13: four zeros among 63 million numbers of `torch.rand`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.operators.activations import activation
from torchlint.semantics.operators.operands import applied
from torchlint.syntax.calls import literal

LOGARITHMS = ("log", "log2", "log10")
DRAWS = frozenset(("torch.rand", "torch.rand_like"))
RECTIFIERS = ("relu", "relu_")

rule = Rule(
    code="TL905",
    name="log-without-clamp",
    family=Family.HYGIENE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a logarithm of values among which there can be a zero",
    triggers=Triggers.all_of(
        "torch", LOGARITHMS, ("rand", "rand_like", "sigmoid", "expit", "Sigmoid", "relu", "relu_")
    ),
    examples=(
        Example(
            bad="""
import torch

def gumbel(logits):
    return logits - torch.log(-torch.log(torch.rand_like(logits)))
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.rand.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html",
    ),
    documentation=__doc__,
    silences={
        "positive": "Something is added, or the values are clamped, first.",
        "changed": "The variable may hold something else by then.",
        "unknown": "Nothing shows that there can be a zero.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=LOGARITHMS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a logarithm of what can be zero."""
    found = next((one for name in LOGARITHMS if (one := applied(call, name, model)) is not None), None)
    if found is None or found.evidence is Evidence.NAMED or rule.silent("test", model.in_test(call)):
        return
    operand = _resolved(found.operand, model)
    told = _zero(operand, model) if operand is not None else None
    if told is None:
        return
    yield Finding(call, f"{model.shown(call, 'This logarithm')} is -inf where {told}")


def _zero(values: cst.BaseExpression, model: Model) -> str | None:
    """What to say about values among which there can be a zero, None where nothing shows that there can."""
    is_rest = isinstance(values, cst.BinaryOperation) and isinstance(values.operator, cst.Subtract)
    if is_rest and isinstance(values, cst.BinaryOperation) and literal(values.left) in (1, 1.0):
        inner = _resolved(values.right, model)
        if inner is not None and _is_sigmoid(inner, model):
            return "the sigmoid rounds to 1, above 17 in float32. `F.logsigmoid(-x)` is exact everywhere."
        return None
    if not isinstance(values, cst.Call):
        return None
    if model.qualified_name(values.func) in DRAWS:
        return "the generator draws an exact 0. Clamp the numbers first, or draw by `.exponential_()`."
    if _is_sigmoid(values, model):
        return "the sigmoid rounds to 0, below -104 in float32. `F.logsigmoid(x)` is exact everywhere."
    if any(applied(values, name, model) is not None for name in RECTIFIERS):
        return "the ReLU is 0, which it is for all negative values. Clamp to a small number instead."
    return None


def _is_sigmoid(values: cst.BaseExpression, model: Model) -> bool:
    if applied(values, "sigmoid", model) is not None:
        return True
    found = activation(values, model)
    return found is not None and found.name == "sigmoid" and found.owner is None


def _resolved(values: cst.BaseExpression, model: Model) -> cst.BaseExpression | None:
    """What a variable was last given, or the values themselves; None if the variable may hold something else."""
    if not isinstance(values, cst.Name):
        return values
    reaching = model.reaching(values)
    if len(reaching) != 1 or reaching[0].kind is not BindingKind.ASSIGNMENT or reaching[0].path:
        return None
    for use in model.uses(reaching[0]):
        parent = model.parent(use)
        is_method = isinstance(parent, cst.Attribute) and parent.value is use
        if rule.silent("changed", is_method and isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_")):
            return None
        if rule.silent("changed", isinstance(parent, cst.Subscript) and parent.value is use):
            return None
    return reaching[0].value
