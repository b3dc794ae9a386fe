"""A convolution adds a bias that the batch or instance normalisation behind it takes away again.

The output of a convolution goes straight into `BatchNorm`, `SyncBatchNorm` or `InstanceNorm`: next to each other in an
`nn.Sequential` or a list of layers, or as `norm(conv(x))` in `forward`.

## Why it costs

The normalisation subtracts the mean of each channel, and a bias is nothing but a part of that mean: whatever value it
has, the result is the same, and its own `bias` (`affine=True`) does the shifting. The useless one still costs: it is
added to every element of the activation, its gradient is a sum over the batch and all positions (a reduction as big as
the activation, with a gradient that is zero up to rounding), and the optimizer keeps and updates state for it.

## What to write instead

`nn.Conv2d(inside, outside, 3, bias=False)`, as the models of torchvision do. Where the normalisation is optional
(`if normalize: layers.append(nn.BatchNorm2d(outside))`) write `bias=not normalize`.

The fix is unsafe: training computes the same up to rounding, but a checkpoint of the old model holds a key that the new
one lacks, and its running means contain the old bias, so that it would evaluate differently; functions that fill
`conv.bias` without asking whether it is None fail; and the initialisation draws fewer random numbers. There is no fix
where the file loads weights into a model.

## When to ignore it

Where released weights must go on loading, and where the normalisation is frozen or replaced later (a bias is needed
then), or folded into the convolution for inference (which gives it a bias of its own).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.layers.parameters import Touch
from torchlint.semantics.layers.successors import Consumer, Use
from torchlint.semantics.model import Model
from torchlint.semantics.tables.layers import CONVOLUTIONS, NORMS, dimensions
from torchlint.syntax.calls import Arguments, literal

WHY = (
    "Training computes the same up to rounding, but saved checkpoints hold the removed bias and their running means "
    "contain it, and the initialisation draws fewer random numbers."
)

rule = Rule(
    code="TL401",
    name="conv-bias-before-norm",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="a convolution has a bias that the normalisation behind it removes",
    triggers=Triggers.all_of(
        tuple(sorted({name.rpartition(".")[2] for name in CONVOLUTIONS} | {"nn"})),
        tuple(sorted({name.rpartition(".")[2] for name in NORMS} | {"getattr"})),
    ),
    examples=(
        Example(
            bad="from torch import nn\n\nstem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n",
            good="from torch import nn\n\nstem = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8))\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-bias-for-convolutions-directly-followed-by-a-batch-norm",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html",
        "https://arxiv.org/abs/1502.03167",
    ),
    documentation=__doc__,
    silences={
        "no-bias": "`bias=False`.",
        "expression": "An expression or a star argument decides about the bias.",
        "between": "Something stands between the two: an activation, dropout, an addition, a `cat`.",
        "other-norm": "Another normalisation follows, or can: `GroupNorm`, `LayerNorm`, one that the file defines.",
        "elsewhere": "The output of the convolution is used elsewhere too, or it is not visible where it goes.",
        "run-time": "It depends on the call of `forward` whether the normalisation follows.",
        "helper": "A helper creates the convolution, and one of its uses goes elsewhere.",
        "frozen": "The normalisation is put in evaluation mode, in which it subtracts a constant.",
        "channels": "The two have different numbers of channels or dimensions.",
        "own-bias": "The file reads or fills the bias of this very convolution.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call)
def conv_bias(node: cst.CSTNode, model: Model) -> Iterator[Finding]:
    """Report the call that creates a convolution with a bias that is taken away again."""
    if not isinstance(node, cst.Call):
        return
    names = model.layers.class_names(node)
    if not names or not names <= CONVOLUTIONS:
        return
    given = model.layers.arguments(node)
    if given is None:
        return
    bias = given.get("bias")
    if rule.silent("no-bias", literal(bias) is False):
        return
    if rule.silent(
        "expression", (bias is not None and literal(bias) not in (True, False)) or (given.open and bias is None)
    ):
        return
    uses = model.layers.successors(node)
    norms = [consumer for use in uses for consumer in _norms(use, model)]
    if not norms or not all(_feeds_norm(use, model) for use in uses):
        return
    name = min(names)
    if rule.silent("channels", not all(_fits(name, given, norm.node, model) for norm in norms)):
        return
    if rule.silent(
        "frozen", any(isinstance(n.node, cst.Call) and model.layers.switched_to_eval(n.node) for n in norms)
    ):
        return
    touch = model.layers.touches(node, name, "bias")
    if rule.silent("own-bias", touch is Touch.OWN):
        return
    others = [consumer for use in uses for consumer in use.consumers if consumer not in norms]
    yield Finding(node, _message(node, norms, others, model), _fix(node, given, touch, norms, others, model))


def _norms(use: Use, model: Model) -> list[Consumer]:
    return [consumer for consumer in use.consumers if _is_norm(consumer.node, model)]


def _is_norm(node: cst.CSTNode, model: Model) -> bool:
    names = model.layers.class_names(node) if isinstance(node, cst.Call) else frozenset[str]()
    return bool(names) and names <= NORMS


def _feeds_norm(use: Use, model: Model) -> bool:
    """Whether a use ends in a normalisation, or does so unless a condition leaves the normalisation out."""
    if use.shared or use.chosen_at_run_time or not _norms(use, model):
        return False
    return not any(_could_be_norm(c.node, model) for c in use.consumers if not _is_norm(c.node, model))


def _could_be_norm(node: cst.CSTNode, model: Model) -> bool:
    if not isinstance(node, cst.Call):
        return False
    return "norm" in model.code(node.func).lower() or any(
        made.name is not None and "norm" in made.name.lower() for made in model.layers.constructors(node)
    )


def _fits(name: str, given: Arguments, norm: cst.CSTNode, model: Model) -> bool:
    if not isinstance(norm, cst.Call):
        return True
    features = model.layers.arguments(norm)
    outside = literal(given.get("out_channels"))
    inside = literal(features.get("num_features")) if features is not None else None
    if outside is not None and inside is not None and outside != inside:
        return False
    sizes = {dimensions(other) for other in model.layers.class_names(norm)} - {None}
    return not sizes or dimensions(name) in sizes


def _message(call: cst.Call, norms: list[Consumer], others: list[Consumer], model: Model) -> str:
    norm = model.code(norms[0].node.func) if isinstance(norms[0].node, cst.Call) else "the normalisation"
    instead = "Pass `bias=False`"
    if others:
        condition = _condition(call, norms, model)
        instead = f"Pass `bias={condition}`" if condition else "Pass `bias=False` wherever the normalisation follows"
    return (
        f"`{model.code(call.func)}` adds a bias whose output goes straight into `{norm}`, which subtracts it again "
        f"with the mean: adding it and reducing its gradient is wasted work. {instead}."
    )


def _fix(
    call: cst.Call, given: Arguments, touch: Touch, norms: list[Consumer], others: list[Consumer], model: Model
) -> Fix | None:
    value = _condition(call, norms, model) if others else "False"
    if value is None or touch is Touch.UNCHECKED or model.layers.given_away(call) or model.loads_weights:
        return None
    argument = given.nodes.get("bias")
    if argument is not None and argument not in call.args:
        return None
    edit: Edit = AddKeyword(call, "bias", value) if argument is None else Replace(argument.value, value)
    return Fix(f"Pass `bias={value}`", (edit,), Safety.UNSAFE, WHY, Evidence.INFERRED)


def _condition(call: cst.Call, norms: list[Consumer], model: Model) -> str | None:
    """The plain name that decides whether the normalisation follows, as the value for `bias`."""
    deciding = {model.layers.condition(norm, call) for norm in norms}
    return deciding.pop() if len(deciding) == 1 else None
