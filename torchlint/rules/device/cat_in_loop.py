"""A tensor grows by concatenation in a loop, or each time a metric is updated.

## Why it costs

`x = torch.cat([x, y])` allocates a new tensor and copies everything that was collected so far: n passes copy about
n²/2 parts, and each pass asks the allocator for a larger block. `self.x = torch.cat([self.x, y])` in the `update` of a
metric, or in a step of an evaluation, does so from batch to batch. Arrays of NumPy are TL221.

## What to write instead

Append to a list and call `torch.cat` once after the loop. Where the loop needs the tensor in each pass (decoding
token by token) allocate the final size once and write into slices of it, as a static cache does.

The fix collects in a list that starts with the first value. It is offered where nothing else in the loop uses the
tensor, nothing that the file shows changes the parts after they were collected (they are no parameters, no buffers that
are filled again, no views of those), and no error of the concatenation is caught. It is unsafe in that the parts stay
alive until the loop is over, show what other code writes into their memory until then (a layer that works in place, an
array behind them), and that a loop without any pass gives a copy of the first value.

## When to ignore it

The loop runs a few times only, or it needs the whole tensor in each pass and the final size is not known.

Holds for all supported versions of torch; read in the documentation of `torch.cat` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import InsertAfter, InsertBefore, ReplaceStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.retention.growth import GROWING_TENSORS, Growth

rule = Rule(
    code="TL211",
    name="cat-in-loop",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ON,
    summary="a tensor that grows by `x = torch.cat([x, ...])` in a loop",
    triggers=Triggers.all_of(
        ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "column_stack", "stack")
    ),
    examples=(
        Example(
            bad="""
import torch

def features(model, loader):
    collected = torch.empty(0)
    with torch.no_grad():
        for x in loader:
            collected = torch.cat([collected, model(x)])
    return collected
""",
            good="""
import torch

def features(model, loader):
    collected = torch.empty(0)
    with torch.no_grad():
        collected_parts = [collected]
        for x in loader:
            collected_parts.append(model(x))
        collected = torch.cat(collected_parts)
    return collected
""",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.cat.html",),
    documentation=__doc__,
    silences={
        "not-grown": "The result does not go back into the tensor that is concatenated.",
        "rebuilt": "Each pass makes the tensor anew or cuts it back, so that it does not grow from pass to pass.",
        "few-passes": "The loop runs over the layers of a module, the folds of a cross-validation or the keyword "
        "arguments of a function, a small constant number of times, or trains in a loop of its own with each pass.",
        "window": "A slice of the tensor is kept: its size does not grow.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
)


@rule.check(cst.Call, called=GROWING_TENSORS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a concatenation that feeds itself."""
    growth = model.growths.find(call)
    if growth is None or growth.is_array:
        return
    if rule.silent("rebuilt", growth.rebuilt) or rule.silent("few-passes", growth.few_passes):
        return
    name = model.code(growth.variable)
    yield Finding(
        call,
        f"`{name}` grows by concatenation {growth.often}: every {'call' if growth.is_of_object else 'pass'} copies all "
        f"that was collected so far. {growth.advice('`torch.cat`', 'a tensor')}.",
        _fix(growth, name, model),
    )


def _fix(growth: Growth, name: str, model: Model) -> Fix | None:
    found, parts = growth.collected, f"{name}_parts"
    if found is None or any(other.value == parts for other in model.nodes(cst.Name)):
        return None
    codes = [model.code(part) for part in found.parts]
    collect = f"{parts}.append({codes[0]})" if len(codes) == 1 else f"{parts} += [{', '.join(codes)}]"
    return Fix(
        f"Collect in a list and call `{found.function}` once",
        (
            InsertBefore(growth.root, (f"{parts} = [{name}]",)),
            ReplaceStatement(found.statement, (collect,)),
            InsertAfter(growth.root, (f"{name} = {found.function}({parts}{found.options})",)),
        ),
        Safety.UNSAFE,
        "The parts stay alive until the loop is over and show what is written into them until then; without any pass "
        "the result is a copy.",
        Evidence.INFERRED,
    )
