"""cuDNN may not look for the fastest convolution algorithms.

`torch.backends.cudnn.benchmark = False`, set whatever the user asks for. It is the default of PyTorch; written out it
usually comes from a recipe for repeatable runs, or takes a setting back that was made elsewhere.

## Why it costs

With `benchmark = True` cuDNN runs all algorithms once for each new shape of input, and then uses the fastest. For a
network of convolutions whose inputs keep their size, the search of a few seconds is paid back by every step. Without it
cuDNN picks by a heuristic.

## What to write instead

`torch.backends.cudnn.benchmark = True` where the sizes of images and batches stay the same; pass `drop_last=True` to
the training loader, so that a smaller last batch does not start another search. The fix writes it. It is unsafe:
another algorithm rounds differently, and the choice can change from run to run.

## When to ignore it

Where input sizes change from batch to batch (detection, speech, packed sequences), and where runs must be repeatable.
The rule is silent in functions that seed generators, unless the file calls them in every run, behind flags and
arguments, where the switch is set back, and in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import SETTERS
from torchlint.syntax.calls import literal

if TYPE_CHECKING:
    from torchlint.semantics.process.switches import Setting

BENCHMARK = "torch.backends.cudnn.benchmark"
DETERMINISTIC = "torch.backends.cudnn.deterministic"
WHY = "The choice is then made by timing: results can differ in the last bits, and each new input size is timed anew."

rule = Rule(
    code="TL605",
    name="cudnn-benchmark-off",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="cuDNN may not look for the fastest convolution algorithms",
    triggers=Triggers.all_of(("cudnn", "Trainer"), "benchmark"),
    examples=(
        Example(
            bad="import torch\n\ntorch.backends.cudnn.benchmark = False\n",
            good="import torch\n\ntorch.backends.cudnn.benchmark = True\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.torch.backends.cudnn.benchmark",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-cudnn-auto-tuner",
    ),
    documentation=__doc__,
    silences={
        "argument": "The value is True, a variable or an option.",
        "asked-for": "A flag or a caller asks for it: also by calling a function that only sets switches.",
        "seeding": "The function makes runs repeatable, and the file calls it only if asked to, or not at all.",
        "restored": "The same function sets the switch to something else further on.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Assign, cst.Call, called=SETTERS)
def benchmark_off(node: cst.Assign | cst.Call, model: Model) -> Iterator[Finding]:
    """Report `benchmark = False`."""
    for setting in model.switches.settings(node):
        if setting.name != BENCHMARK or rule.silent("argument", literal(setting.value) is not False):
            continue
        asked = model.chosen(node) or model.switches.is_setter(node)
        if rule.silent("asked-for", asked) or rule.silent("test", model.in_test(node)):
            continue
        seeds = model.switches.makes_repeatable(node)
        if rule.silent("seeding", seeds and not model.choices.is_called_anyway(node)):
            continue
        if rule.silent("restored", model.switches.restored(setting)):
            continue
        message = (
            f"`{model.switches.shown(setting)}` keeps cuDNN from timing its convolution algorithms: it "
            "picks by a heuristic, and may miss the fastest. Write True if the sizes of the inputs stay the same, or "
            "let an argument decide."
        )
        yield Finding(node, message, _fix(setting, model))


def _fix(setting: Setting, model: Model) -> Fix | None:
    """Return the change to True, unless the file asks for deterministic algorithms."""
    nodes: list[cst.Assign | cst.Call] = [*model.nodes(cst.Assign), *model.nodes(cst.Call)]
    asked = (s for node in nodes for s in model.switches.settings(node) if s.name == DETERMINISTIC)
    if not setting.alone or any(literal(s.value) is not False for s in asked):
        return None
    return Fix("Set it to True", (Replace(setting.value, "True"),), Safety.UNSAFE, WHY)
