"""`ToTensor` of `torchvision.transforms.v2` is used, which is deprecated.

## Why it costs

The transform does two things in one: it makes a tensor, and scales whole numbers to floats. In the second generation of
the transforms images stay `uint8` as long as possible, since resizing and cropping bytes is several times as fast as
floats; `ToTensor` early in a pipeline gives that away. It warns, and is going to be removed.

## What to write instead

`v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`; put `ToImage` first in the pipeline and `ToDtype`
last. The fix writes the former in place of the call. It is unsafe: the result is an `Image`, a subclass of `Tensor`,
and a tensor that goes in is scaled too.

## When to ignore it

Where the pipeline must run with torchvision before 0.16, which has no `ToImage`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.edits.renaming import from_root, spelled
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.references.symbols import Use, is_asked_for, is_type_test, symbol_uses
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tables.symbols import TO_TENSOR

V2 = "torchvision.transforms.v2"
PARTS = ("Compose", "ToImage", "ToDtype")

rule = Rule(
    code="TL808",
    name="torchvision-to-tensor",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`v2.ToTensor` of torchvision, which is deprecated",
    triggers=Triggers.all_of("torchvision", "v2", "ToTensor"),
    examples=(
        Example(
            bad="import torch\nfrom torchvision.transforms import v2\n\nconvert = v2.ToTensor()\n",
            good="import torch\nfrom torchvision.transforms import v2\n\n"
            "convert = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])\n",
        ),
    ),
    references=("https://docs.pytorch.org/vision/stable/generated/torchvision.transforms.v2.ToTensor.html",),
    documentation=__doc__,
    silences={
        "version": "The code runs only with some versions: after a test of one, or where an import failed.",
        "type-test": "A type test asks for the class: nothing is made of it.",
        "other-name": "The name means something else: the transform of the first generation, or one of the project.",
    },
    fixes=(Safety.UNSAFE,),
    in_tests=True,
)


@rule.check(cst.Module)
def to_tensor(module: cst.Module, model: Model) -> Iterator[Finding]:
    """Report the uses of the transform."""
    for use in symbol_uses(model, TO_TENSOR):
        if rule.silent("version", depends_on_version(use.node, model)):
            continue
        if rule.silent("type-test", is_type_test(use, model)):
            continue
        yield Finding(
            use.node,
            "`ToTensor` of the transforms v2 is deprecated, and everything after it works on floats instead of bytes. "
            "Write `v2.ToImage()` first and `v2.ToDtype(torch.float32, scale=True)` last, the rest between.",
            _fix(use, model),
        )


def _fix(use: Use, model: Model) -> Fix | None:
    if use.call is None or use.call.args or not isinstance(use.reference, cst.Attribute) or is_asked_for(use, model):
        return None  # without its import, which goes, a bare name has nothing to bring the module in
    parts = [from_root(use.reference, f"{V2}.{part}", model) for part in PARTS]
    dtype = spelled("torch.float32", use.call, model)
    if dtype is None or any(part is None or part.imports for part in parts):
        return None
    compose, image, convert = (part.code for part in parts if part is not None)
    code = f"{compose}([{image}(), {convert}({dtype.code}, scale=True)])"
    return Fix(
        "Write `ToImage` and `ToDtype`",
        (Replace(use.call, code), *dtype.imports),
        Safety.UNSAFE,
        "The result is an `Image`, a subclass of `Tensor`, and a tensor that goes in is scaled too. It needs "
        "torchvision 0.16.",
    )
