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
where the file loads weights into a model, writes the name of the bias as text (`state["stem.conv.bias"]`), or takes
parameters by their place (`list(model.parameters())[5]`, parts of a flat vector).

A linear layer before `BatchNorm1d` is reported where its input is a matrix, or where both are written with the same
number of features: anything but a matrix would need an axis of just that length. In the second case there is no fix.

## When to ignore it

Where released weights must go on loading, and where the normalisation is frozen or replaced later (a bias is needed
then), or folded into the convolution for inference in place. A `forward_fuse` beside `forward` does not count as
another use: folding gives a new convolution with a bias of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.layers.parameters import Touch
from torchlint.semantics.model import Model
from torchlint.semantics.tables.layers import CONVOLUTIONS, LINEAR, NORMS
from torchlint.syntax.calls import Arguments, literal

if TYPE_CHECKING:
    from torchlint.semantics.layers.norms import Normalised

_HOOKS = tuple(f"register_{name}_hook" for name in ("forward", "forward_pre", "module_forward", "module_forward_pre"))
WHY = (
    "Training computes the same up to rounding, but saved checkpoints hold the removed bias and their running means "
    "contain it, the initialisation draws fewer random numbers, and one of another file may expect a bias."
)

rule = Rule(
    code="TL401",
    name="conv-bias-before-norm",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="a convolution has a bias that the normalisation behind it removes",
    triggers=Triggers.all_of(
        tuple(sorted({name.rpartition(".")[2] for name in CONVOLUTIONS | LINEAR})),
        tuple(sorted({name.rpartition(".")[2] for name in NORMS})),
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
        "rank": "A linear layer whose input may have more axes than a matrix: neither can that be seen, nor is the "
        "normalisation written to be as wide as the layer.",
        "channels": "The two have different numbers of channels or dimensions.",
        "own-bias": "The file reads or fills the bias of this very convolution.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call)
def conv_bias(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the call that creates a layer with a bias that is taken away again."""
    known = model.qualified_name(node.func)
    if known is not None and known not in CONVOLUTIONS | LINEAR:
        return
    names = model.layers.class_names(node)
    given = model.layers.arguments(node) if names and names <= CONVOLUTIONS | LINEAR else None
    if given is None or rule.silent("no-bias", literal(given.get("bias")) is False):
        return
    if rule.silent("expression", not given.absent("bias") and not isinstance(literal(given.get("bias")), bool)):
        return
    found = model.norms.find(node)
    if found is None or rule.silent("channels", not all(model.norms.fits(node, norm) for norm in found.norm_calls)):
        return
    is_open = bool(names & LINEAR) and not model.layers.takes_matrix(node)
    is_wide = all(model.norms.is_as_wide(node, norm) for norm in found.norm_calls)
    if rule.silent("rank", is_open and (not is_wide or model.layers.takes_more(node))):
        return
    if rule.silent("frozen", any(model.layers.switched_to_eval(norm) for norm in found.norm_calls)):
        return
    touch = model.layers.touches(node, min(names), "bias")
    if rule.silent("own-bias", touch is Touch.OWN):
        return
    value = _condition(node, found, model) if found.optional else "False"
    choice = any(model.layers.open_to_callers(norm.func) for norm in found.norm_calls)
    fix = _fix(node, given, touch, value, model) if not choice and not is_open else None
    yield Finding(node, _message(node, found, value, is_open, model), fix)


def _message(call: cst.Call, found: Normalised, value: str | None, is_open: bool, model: Model) -> str:
    norm = model.code(found.norm_calls[0].func)
    of_vectors = ", if what comes in is a batch of vectors" if is_open else ""
    instead = f"Pass `bias={value}`" if value else "Pass `bias=False` wherever the normalisation follows"
    if model.layers.loads_released:
        instead += ", unless the released weights that this file downloads, which hold it, must go on loading"
    return (
        f"`{model.code(call.func)}` adds a bias and its output goes straight into `{norm}`, which subtracts it again "
        f"with the mean{of_vectors}: adding it and reducing its gradient is wasted work. {instead}."
    )


def _fix(call: cst.Call, given: Arguments, touch: Touch, value: str | None, model: Model) -> Fix | None:
    if value is None or touch is Touch.UNCHECKED or model.layers.given_away(call) or model.layers.loads_weights:
        return None
    if model.layers.replaces_norms or model.mentions(*_HOOKS):
        return None  # a hook sees what the convolution gives
    argument = given.nodes.get("bias")
    if argument not in call.args and "bias" in given.named:
        return None  # it stands in a partial or in a mapping, for other calls too
    edit: Edit = AddKeyword(call, "bias", value) if argument is None else Replace(argument.value, value)
    return Fix(f"Pass `bias={value}`", (edit,), Safety.UNSAFE, WHY, Evidence.INFERRED)


def _condition(call: cst.Call, found: Normalised, model: Model) -> str | None:
    """The plain name that decides whether the normalisation follows, as the value for `bias`."""
    if any(model.layers.may_part(other, found.norms, call) for other in found.others):
        return None
    deciding = {model.layers.condition(norm, call) for norm in found.norms}
    return deciding.pop() if len(deciding) == 1 else None
