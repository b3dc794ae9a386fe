"""A model of torchvision is built with `pretrained=`, which became `weights=`.

`pretrained=` and `pretrained_backbone=`, also as the first positional argument, of the builders in
`torchvision.models`.

## Why it costs

The parameters are deprecated since torchvision 0.13 (with torch 1.12) and warn on each call. `pretrained=True` also
hides which weights it means: the oldest ones of each model, though newer ones are often several percent better.

## What to write instead

`weights="IMAGENET1K_V1"` for what `pretrained=True` means, `weights=None` for False; `weights="DEFAULT"` for the best
weights that the installed torchvision has. A member of the enumeration, `ResNet50_Weights.IMAGENET1K_V1`, does the
same.

The fix writes the name of the weights that were meant, as a string, so that nothing needs to be imported. It is safe
where the project's oldest torch is 1.12 or newer, unsafe otherwise. There is none where `**options` may carry more.

## When to ignore it

Where the project supports torchvision before 0.13: the rule is silent if the settings or the metadata of the project
say that torch can be older than 1.12, and behind tests of the version.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, RemoveArgument
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.references.version_guards import depends_on_version
from torchlint.semantics.tables.vision import PRETRAINED
from torchlint.syntax.calls import Arguments, literal

MODELS = "torchvision.models."
QUANTIZED = "torchvision.models.quantization."
SIGNATURE = ("pretrained", "progress")
NEW_NAMES = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}
SINCE = (1, 12)
"""The torch of torchvision 0.13, the first with `weights`."""

rule = Rule(
    code="TL807",
    name="torchvision-pretrained",
    family=Family.MODERN,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`pretrained=` of a torchvision model, which became `weights=`",
    triggers=Triggers.all_of("torchvision", frozenset(PRETRAINED["pretrained"])),
    examples=(
        Example(
            bad="from torchvision import models\n\nnet = models.resnet50(pretrained=False)\n",
            good="from torchvision import models\n\nnet = models.resnet50(weights=None)\n",
        ),
    ),
    references=("https://docs.pytorch.org/vision/stable/models.html",),
    documentation=__doc__,
    silences={
        "new-form": "The call says which weights it wants, or nothing about them.",
        "version": "The code runs only with some versions: after a test of one, or where an import failed.",
        "other-name": "The name means something else: of another library, of the project, or nobody knows what.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
    in_tests=True,
)


@rule.check(cst.Call)
def pretrained(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a model that is built with the old parameters."""
    name = model.callee(call) or ""
    builder = name.rpartition(".")[2]
    if not name.startswith(MODELS) or builder not in PRETRAINED["pretrained"]:
        return
    if model.target.lacks(SINCE):
        return
    given = model.arguments(call, SIGNATURE)
    old = [parameter for parameter in NEW_NAMES if _is_old(parameter, given)]
    if rule.silent("new-form", not old) or rule.silent("version", depends_on_version(call, model)):
        return
    parameters = " and ".join(f"`{parameter}`" for parameter in old)
    yield Finding(
        call,
        f"{parameters} of `{model.code(call.func)}`: deprecated since torchvision 0.13, and silent about which weights "
        f"are meant. {_advice(old, given, builder)}",
        None if name.startswith(QUANTIZED) else _fix(call, given, old, builder, model),
    )


def _is_old(parameter: str, given: Arguments) -> bool:
    """Whether an old parameter is given; what stands first is one only if it can be a flag."""
    node = given.nodes.get(parameter)
    if node is None or NEW_NAMES[parameter] in given.named:
        return False
    return node.keyword is not None or isinstance(literal(node.value), bool)


def _advice(old: list[str], given: Arguments, builder: str) -> str:
    wanted = [f"`{NEW_NAMES[parameter]}={_weights(parameter, given, builder) or '...'}`" for parameter in old]
    return f"Write {' and '.join(wanted)}."


def _weights(parameter: str, given: Arguments, builder: str) -> str | None:
    """Return the value that the new parameter gets, None where that is not certain."""
    value = given.get(parameter)
    member = PRETRAINED[parameter].get(builder)
    if literal(value) is False:
        return "None"
    if not member or not isinstance(value, cst.BaseExpression):
        return None
    return f'"{member}"' if literal(value) is True else None


def _fix(call: cst.Call, given: Arguments, old: list[str], builder: str, model: Model) -> Fix | None:
    written = {parameter: _weights(parameter, given, builder) for parameter in old}
    if given.open or given.extra or not all(written.values()):
        return None
    edits: list[Edit] = []
    for parameter in old:
        edits.append(RemoveArgument(call, given.nodes[parameter]))
        edits.append(AddKeyword(call, NEW_NAMES[parameter], written[parameter] or "None"))
    progress = given.nodes.get("progress")
    if progress is not None and progress.keyword is None:
        edits += [RemoveArgument(call, progress), AddKeyword(call, "progress", model.code(progress.value))]
    is_safe = model.target.version >= SINCE
    return Fix(
        f"Write {' and '.join(f'`{NEW_NAMES[p]}={written[p]}`' for p in old)}",
        tuple(edits),
        Safety.SAFE if is_safe else Safety.UNSAFE,
        "" if is_safe else "It needs torchvision 0.13, and nothing says which one is used.",
    )
