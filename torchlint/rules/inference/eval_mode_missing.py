"""A model is trained in evaluation mode, or evaluated in training mode.

Two cases that a file shows by itself: a training loop that calls `model.eval()` and never `model.train()` again, and a
model with dropout or batch norm that a validation loop runs although nothing in the file calls `.eval()`.

## Why it costs

After `model.eval()` dropout is off and batch norm takes its running statistics, until `model.train()` is called: from
the second epoch on a model is trained without the one and with frozen statistics of the other. Without `model.eval()`
a validation drops activations at random and moves the running statistics by its own data, so that the reported number
is worse than the model, and the model is another one afterwards. `torch.no_grad()` changes neither.

## What to write instead

```python
for epoch in range(epochs):
    model.train()
    train_one_epoch(model, loader)
    model.eval()
    with torch.no_grad():
        validate(model, val_loader)
```

## When to ignore it

Where the statistics are meant to be frozen from some epoch on, or dropout is meant to stay on (Monte Carlo dropout).

Holds for all supported versions of torch. Read in "Evaluation Mode (`nn.Module.eval()`)" of the notes on autograd
mechanics of torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import method_call

SWITCHES = frozenset(("train",))
WANTED = re.compile(r"mc_?drop|monte_?carlo|bayes|uncertain|enable_dropout", re.IGNORECASE)

rule = Rule(
    code="TL503",
    name="eval-mode-missing",
    family=Family.INFERENCE,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="training goes on in evaluation mode, or a validation runs in training mode",
    triggers=Triggers.all_of(("backward", "no_grad", "inference_mode", "set_grad_enabled"), "torch"),
    examples=(
        Example(
            bad="""
import torch

def fit(model, loader, val_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, sum((model(x).argmax(1) == y).sum() for x, y in val_loader))
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval",
    ),
    documentation=__doc__,
    silences={
        "resumed": "`train()` is called in the loop, or in a function that it calls, or may be called out of sight.",
        "once": "The mode is set once: before or after training, in the last epoch, or where the loop is left.",
        "frozen": "Training follows `eval()` at once: it is meant to use the statistics that the model has.",
        "not-trained": "What is set to evaluate is not what the optimizer moves: a teacher, a loss network.",
        "no-modes": "The class of the model has no layer that computes otherwise in evaluation.",
        "set": "The file sets the mode of some module, or speaks of modes in another way.",
        "not-evaluated": "Nothing shows a validation: no loop over batches, no gradients switched off, or it trains.",
        "unknown": "Nothing shows which layers the model has.",
        "wanted": "The file speaks of Monte Carlo dropout or of uncertainty: dropout is meant to stay on.",
        "test": "The code belongs to a test.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=("eval",))
def unresumed(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report ``model.eval()`` in a training loop that never goes back."""
    method = method_call(call, "eval")
    if method is None or not model.backward.passes():
        return
    loop = model.modes.unresumed(call)
    if loop is None or rule.silent("test", model.in_test(call)):
        return
    name = model.code(method.value)
    yield Finding(
        call,
        f"Nothing sets `{name}` back to training after this: from the next pass of the training loop on its dropout is "
        f"off and its batch norm takes running statistics. Call `{name}.train()` where an epoch of training starts.",
    )


@rule.check(cst.Module)
def evaluated(module: cst.Module, model: Model) -> Iterator[Finding]:
    """Report the first validation of a file that sets no module to evaluate."""
    if not model.modes.shows_evaluation or rule.silent("set", _speaks_of_modes(model)) or _wants_dropout(model):
        return
    for call in model.nodes(cst.Call):
        if model.modes.evaluated(call) and not model.in_test(call):
            yield Finding(
                call,
                f"`{model.code(call.func)}` has dropout or batch norm, and nothing in this file calls `.eval()`: the "
                "validation drops activations at random, or moves the running statistics. Call "
                f"`{model.code(call.func)}.eval()` before it, and `.train()` after it.",
            )
            return


def _speaks_of_modes(model: Model) -> bool:
    """Whether a file calls ``eval()``, switches training off, or asks whether it is on."""
    if model.speaks_of("eval", "training"):
        return True
    switches = model.calls_by_name.named(SWITCHES)
    return any(method_call(call, *SWITCHES) is not None and len(call.args) == 1 for call in switches)


def _wants_dropout(model: Model) -> bool:
    """Whether a name in the file says that the model is to be sampled from."""
    functions = (function.name.value for function in model.nodes(cst.FunctionDef))
    return any(map(WANTED.search, (*functions, *(name.value for name in model.nodes(cst.Name)))))
