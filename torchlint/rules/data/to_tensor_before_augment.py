"""An albumentations pipeline makes a tensor of the image before it is done with it, and the next transform fails.

`ToTensorV2` stands before another transform in `A.Compose([...])`.

## Why it costs

The transforms of albumentations work on NumPy arrays whose last axis is the channel. `ToTensorV2` makes a tensor whose
first axis is. What comes after it raises (OpenCV takes no tensors, sizes are read off the wrong axes, `astype` is
missing), or turns the wrong axes: `RandomRotate90` gives back an array, rotated over channels and rows. A transform
that runs with a probability fails only now and then, and in a pipeline with small probabilities late.

## What to write instead

```python
A.Compose([A.RandomCrop(224, 224), A.HorizontalFlip(), A.Normalize(), ToTensorV2()])
```

There is no automatic fix: a transform in between may be one's own, and expect the tensor.

## When to ignore it

Where the transform behind it touches nothing but masks, boxes or labels.

Tried with albumentations 2.0.8: of sixteen of its transforms behind `ToTensorV2`, fifteen raised and one turned the
wrong axes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

PACKAGE = "albumentations."
TO_TENSOR = frozenset(f"{PACKAGE}pytorch.{name}" for name in ("ToTensorV2", "transforms.ToTensorV2", "ToTensor"))
CHAINS = ("Compose", "Sequential", "ReplayCompose")
# What need not touch the image, or whose work the user writes.
OWN = ("Lambda", "NoOp", "ToTensor3D")

rule = Rule(
    code="TL108",
    name="to-tensor-before-augment",
    family=Family.DATA,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="an albumentations transform is given the tensor that `ToTensorV2` made",
    triggers=Triggers.all_of("albumentations", ("ToTensorV2", "ToTensor"), CHAINS),
    examples=(
        Example(
            bad="import albumentations as A\n"
            "from albumentations.pytorch import ToTensorV2\n\n"
            "transform = A.Compose([A.Normalize(), ToTensorV2(), A.HorizontalFlip(p=0.5)])\n",
        ),
    ),
    references=("https://albumentations.ai/docs/api-reference/pytorch/transforms/",),
    documentation=__doc__,
    silences={
        "last": "No transform of albumentations comes after it.",
        "own": "What comes after it is a function or class of the user's, a `Lambda`, or of another library.",
        "hidden": "The list is put together elsewhere.",
        "other": "The tensor is made by a transform of another library.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a transform behind the one that makes a tensor."""
    package, _, name = (model.callee(call) or "").rpartition(".")
    if name not in CHAINS or not f"{package}.".startswith(PACKAGE):
        return
    transforms = _elements(model.arguments(call, ("transforms",)).get("transforms"))
    made = next((place for place, each in enumerate(transforms) if _named(each, model) in TO_TENSOR), None)
    if made is None:
        return
    later = next((each for each in transforms[made + 1 :] if _takes_images(each, model)), None)
    if rule.silent("last", later is None) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        transforms[made],
        f"`ToTensorV2` stands before {model.shown(later, 'another transform')}, which works on NumPy arrays and fails "
        "on a tensor, or turns the wrong axes. Move it to the end of the pipeline.",
    )


def _elements(transforms: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """Return what a list or tuple holds; nothing for anything else, or where a star hides a part of it."""
    if not isinstance(transforms, (cst.List, cst.Tuple)):
        return []
    if any(isinstance(element, cst.StarredElement) for element in transforms.elements):
        return []
    return [element.value for element in transforms.elements]


def _named(transform: cst.BaseExpression, model: Model) -> str | None:
    return model.callee(transform) if isinstance(transform, cst.Call) else None


def _takes_images(transform: cst.BaseExpression, model: Model) -> bool:
    """Whether a transform is one of albumentations' own, which takes arrays."""
    name = _named(transform, model) or ""
    own = name.rpartition(".")[2] in OWN or name in TO_TENSOR
    return name.startswith(PACKAGE) and not rule.silent("own", own)
