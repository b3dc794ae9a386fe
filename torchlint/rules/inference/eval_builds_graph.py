"""An evaluation or inference routine runs the model with gradients on.

## Why it costs

Without `torch.no_grad()` the forward pass records a graph and keeps every activation that the backward pass would
need: memory is several times what inference takes, and the bookkeeping costs time on the CPU. `model.eval()` does not
switch it off.

## What to write instead

Decorate the routine with `@torch.no_grad()` (or `@torch.inference_mode()`, torch 1.9 and newer, where its results are
not used in training later). The fix adds `@torch.no_grad()`. It is unsafe in that the results no longer carry a
graph. A generator, a coroutine, what is handed something that may differentiate (a callback, `cam(x)`), puts results
with their graph elsewhere or imports torch itself is not decorated: wrap the call in `with torch.no_grad():`. Where a
routine trains by turns (a loop over a validation loader, or behind `model.eval()`), wrap the loop that evaluates; where
it is told (`if split == "train": loss.backward()`), write `with torch.set_grad_enabled(split == "train"):`.

A routine evaluates where it says so (its name, `model.eval()`), or where its model was set to evaluate when it was made
(by the object, by a function of the file, at the top level of a script) and nothing in the file trains, and so does a
pipeline that denoises. In training code a forward pass is reported of which nothing but pictures are made
(`save_image`, `imshow`, ..., also by a function of the file); out of it one in a loop, by an object that loaded the
model, or in a function that is named for it (`generate_samples`, `predict`), whose result is only detached or read.
Once, where they are defined, are reported: a method `inference` or `infer` of a model, `generate` and `sample` that
only add what they draw or choose to a sequence, `generate_text` and the like that draw in a loop and hand out texts,
numbers or what was drawn, a sampler of a diffusion model that goes back in time from noise; a step or method of
training where evaluation calls it.

## When to ignore it

The routine needs gradients with respect to its input (saliency maps, adversarial examples, test-time training), or it
is called from another file under `torch.no_grad()`.

Holds for all supported versions of torch; read in the notes on autograd mechanics of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.operations import AddDecorator
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model

if TYPE_CHECKING:
    from torchlint.semantics.evaluation.inference import InferenceCall

_UNLESS = ", unless something goes back through what it puts away"
rule = Rule(
    code="TL501",
    name="eval-builds-graph",
    family=Family.INFERENCE,
    since="0.1.0",
    default=Default.ON,
    summary="evaluation or inference without `no_grad`",
    triggers=Triggers.all_of("torch"),
    examples=(
        Example(
            bad="""
import torch

def evaluate(model: torch.nn.Module, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    return correct
""",
            good="""
import torch

@torch.no_grad()
def evaluate(model: torch.nn.Module, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    return correct
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
        "https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
    ),
    documentation=__doc__,
    silences={
        "no-graph": "Gradients are off, or may be: a decorator, a `with` block, `set_grad_enabled(...)`, every caller, "
        "the method that is called, or the framework.",
        "wanted": "The function asks for gradients: `torch.enable_grad()`, `set_grad_enabled(True)`, "
        "`requires_grad_()` on an input, a model that gives forces, an explainer or a step that gets the result.",
        "volatile": "The routine still asks for `volatile=True`, which TL504 reports with the same advice.",
        "trains": "The routine computes gradients, or what it returns is backpropagated.",
        "no-evaluation": "Nothing shows that the routine evaluates: no `.eval()`, no name that says so, no picture.",
        "no-model": "What is called is no model: a loss, a metric, a transform, `generate` of a library.",
        "frozen": "The parameters of the model are frozen (`requires_grad_(False)`): no graph is built.",
        "dry-run": "The model is tried out once, and nothing looks at the result.",
        "returned": "It returns a result with its graph, other than features gathered over a whole loader, and no "
        "caller in the file shows what becomes of it.",
        "is-forward": "It is part of a model's own forward pass.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
)


@rule.check(cst.Call, condition=lambda model: model.inference.occurs)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a forward pass with gradients in an evaluation routine."""
    found = model.inference.call(call)
    if found is not None:
        yield from _report(call, found, model)


@rule.check(cst.Call, condition=lambda model: model.shown_forwards.occur or model.detached.occur)
def check_values(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report one of which only pictures are made, whatever gradients the routine wants, or only values are read."""
    found = shown = model.shown_forwards.call(call)
    if found is None and (found := model.detached.outside_training(call)) is not None:
        heat = model.heat(call)
        found = None if heat is not None and heat.trains else found  # TL316 reports it
    other = model.inference.call(call) if found is not None else None
    if found is not None and (other is None or (shown is not None and other.needs_gradients)):
        yield from _report(call, found, model)


@rule.check(cst.FunctionDef)
def check_method(function: cst.FunctionDef, model: Model) -> Iterator[Finding]:
    """Report `inference` of a model, which its users may call with gradients on."""
    call = model.inference.first_pass(function)
    if call is not None and model.detached.outside_training(call) is None:
        cure = "Wrap what it computes in" if function.asynchronous is not None else "Decorate it with"
        yield Finding(
            call,
            f"`{function.name.value}` runs `{model.code(call.func)}` with gradients on: unless all that call it switch "
            "them off, the graph keeps every activation in memory, although an inference backpropagates nothing. "
            f"{cure} `torch.no_grad()`.",
        )


def _report(call: cst.Call, found: InferenceCall, model: Model) -> Iterator[Finding]:
    if model.inference.is_reported_within(call):
        return
    feeds = found.function is not None and model.inference.methods.may_feed_loss(found.function)
    if rule.silent("trains", found.trains or feeds) or rule.silent("frozen", found.frozen):
        return
    if rule.silent("dry-run", found.is_dry_run):
        return
    if rule.silent("returned", found.function is not None and not found.returns_host_values):
        return
    gradients = model.evaluator.gradients
    if rule.silent("no-graph", found.switches_off or gradients.disabled(call) or gradients.left_open(call)):
        return
    wanted = gradients.wanted(call) or found.needs_gradients
    if rule.silent("wanted", wanted) or rule.silent("volatile", gradients.is_volatile(found.function)):
        return
    place = f"`{found.function.name.value}`" if found.function is not None else "This script"
    waste = "although nothing is backpropagated" if found.turn is None else "also where it only evaluates"
    yield Finding(
        call,
        f"{place} runs `{model.code(call.func)}` with gradients on: the graph keeps every activation in memory, "
        f"{waste}. {_cure(found, model)}",
        _fix(found, model),
    )


def _cure(found: InferenceCall, model: Model) -> str:
    if found.turn is not None:
        return f"Wrap the call in `with torch.set_grad_enabled({model.code(found.turn)}):`."
    if found.in_loop and not _may_differentiate(found, model):
        return "Put the loop into `with torch.no_grad():`."
    wrap = "rap the call in `with torch.no_grad():`" + _UNLESS * found.leaves + "."
    if found.function is None or found.is_part or found.leaves or _may_differentiate(found, model):
        return f"W{wrap}"
    return f"Decorate the function with `@torch.no_grad()` or w{wrap}"


def _may_differentiate(found: InferenceCall, model: Model) -> bool:
    """Whether something else that the function calls may need gradients."""
    return found.function is not None and model.inference.other_passes.run_by(found.function)


def _fix(found: InferenceCall, model: Model) -> Fix | None:
    is_kept = found.is_part or found.is_generator or found.leaves or _may_differentiate(found, model)
    if found.function is None or is_kept:
        return None
    torch = model.spelling("torch.no_grad", found.function)  # where the decorator runs
    if torch is None:
        return None
    fills = " `nn.TransformerEncoder` may fill padded places with zeros then." * model.mentions("TransformerEncoder")
    return Fix(
        f"Decorate `{found.function.name.value}` with `@{torch}()`",
        (AddDecorator(found.function, f"{torch}()"),),
        Safety.UNSAFE,
        f"What the function computes no longer carries a graph.{fills}",
        found.evidence,
    )
