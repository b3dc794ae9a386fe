"""Deterministic algorithms are forced, or cuDNN is switched off, in every run.

`torch.use_deterministic_algorithms(True)`, `torch.backends.cudnn.deterministic = True` and
`torch.backends.cudnn.enabled = False`, set whatever the user asks for; also through a Lightning
`Trainer(deterministic=True)` or Hugging Face's `TrainingArguments(full_determinism=True)`.

## Why it costs

`cudnn.deterministic` leaves out the convolution algorithms that add in any order, which are often the fastest, above
all in the backward pass. `use_deterministic_algorithms(True)` does the same, replaces atomic additions by slower
kernels (`index_add`, `scatter_add`, the backward pass of `embedding`), fills fresh memory with NaN (torch >= 2.2, see
`torch.utils.deterministic.fill_uninitialized_memory`) and raises where there is no deterministic kernel.
`cudnn.enabled = False` loses cuDNN altogether: convolutions and recurrent layers fall back to slower kernels.

## What to write instead

Let an argument decide: `torch.use_deterministic_algorithms(args.deterministic)`. Seeds alone cost nothing: a function
that seeds the generators need not set these switches, or only if it is asked to.

## When to ignore it

Where results must be equal bit for bit from run to run. The rule is silent in functions that seed generators, unless
the file calls them in every run, where an argument or a flag decides, where the switch is set back, in tests, and in
files that assert that what two ways compute is equal.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import FRAMEWORK_SWITCHES, SETTERS
from torchlint.syntax.calls import literal

CALLS = frozenset(("torch.use_deterministic_algorithms", "torch.set_deterministic"))
_CALLED = tuple(name.rpartition(".")[2] for name in CALLS)
COSTS: dict[str, tuple[tuple[object, ...], str]] = {
    "torch.backends.cudnn.deterministic": ((True,), "leaves out cuDNN's fastest convolution algorithms"),
    "torch.backends.cudnn.enabled": ((False,), "replaces cuDNN's kernels by slower ones"),
    "torch.use_deterministic_algorithms": ((True, "warn"), "replaces fast kernels by deterministic ones"),
}
_FRAMEWORKS = frozenset(name.rpartition(".")[2] for name in FRAMEWORK_SWITCHES)

rule = Rule(
    code="TL604",
    name="determinism-left-on",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.ON,
    summary="deterministic algorithms are forced in every run",
    triggers=Triggers.all_of(
        ("use_deterministic_algorithms", "set_deterministic", "cudnn", *_FRAMEWORKS),
        ("use_deterministic_algorithms", "set_deterministic", "deterministic", "enabled", "full_determinism"),
    ),
    examples=(Example(bad="import torch\n\ntorch.backends.cudnn.deterministic = True\n"),),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/randomness.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html",
        "https://docs.pytorch.org/docs/stable/backends.html#torch-backends-cudnn",
    ),
    documentation=__doc__,
    silences={
        "argument": "The value is a variable or an option.",
        "asked-for": "A flag or a caller asks for it: also by calling a function that only sets switches.",
        "seeding": "The function makes runs repeatable, and the file calls it only if asked to, or not at all.",
        "restored": "The same function sets the switch to something else further on.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Assign, cst.Call, called=SETTERS)
def switched(node: cst.Assign | cst.Call, model: Model) -> Iterator[Finding]:
    """Report a cuDNN switch that is set to its slow side."""
    for setting in model.switches.settings(node):
        if setting.name not in COSTS:
            continue
        slow, effect = COSTS[setting.name]
        if rule.silent("argument", literal(setting.value) not in slow) or _is_wanted(node, model):
            continue
        if rule.silent("restored", model.switches.restored(setting)):
            continue
        yield Finding(node, _message(f"`{model.switches.shown(setting)}`", effect, node, model))


@rule.check(cst.Call, called=_CALLED)
def deterministic(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the call that forces deterministic algorithms."""
    if model.callee(node) not in CALLS:
        return
    mode = literal(model.arguments(node, ("mode",)).get("mode"))
    if mode is False or rule.silent("argument", mode is not True) or _is_wanted(node, model):
        return
    if rule.silent("restored", _called_again(node, model)):
        return
    yield Finding(node, _message(f"`{model.code(node)}`", "replaces fast kernels by deterministic ones", node, model))


def _message(what: str, effect: str, node: cst.CSTNode, model: Model) -> str:
    function = model.enclosing_function(node)
    if function is not None and model.switches.makes_repeatable(node):
        return (
            f"{what} {effect} in every run, since `{function.name.value}` is called whatever the user asks for. "
            "Let an argument decide: seeds alone cost nothing, only who repeats a run bit for bit should pay."
        )
    return (
        f"{what} {effect} in every run. Let an argument decide, so that only who wants to repeat a run bit for bit "
        "pays for it."
    )


def _is_wanted(node: cst.CSTNode, model: Model) -> bool:
    if model.switches.are_for_comparison:
        return True  # equal results are what the file is about
    asked = model.chosen(node) or model.switches.is_setter(node)
    if rule.silent("asked-for", asked) or rule.silent("test", model.in_test(node)):
        return True
    seeds = model.switches.makes_repeatable(node)
    return rule.silent("seeding", seeds and not model.choices.is_called_anyway(node))


def _called_again(node: cst.Call, model: Model) -> bool:
    function = model.enclosing_function(node)
    calls = (c for c in model.nodes(cst.Call) if model.callee(c) in CALLS and model.order(c) > model.order(node))
    later = (c for c in calls if model.enclosing_function(c) is function)
    return any(literal(model.arguments(c, ("mode",)).get("mode")) is not True for c in later)
