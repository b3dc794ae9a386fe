"""The backward pass runs inside the `autocast` block that the forward pass needs.

## Why it costs

`autocast` chooses the type of every operation that runs while it is on, and those of the backward pass are operations
too. Each of them already has the type of its forward counterpart, so that there is nothing to choose. What ran in
float32 on purpose (a loss under `autocast(enabled=False)`, a custom function) is the exception: its matrix products are
cast to half precision on the way back, and its gradients lose their lower bits. PyTorch's own page says that autocast
"should wrap only the forward pass(es) of your network, including the loss computation(s). Backward passes under
autocast are not recommended."

## What to write instead

Move `loss.backward()`, or `accelerator.backward(loss)`, and what follows it, one level out. The fix does so where only
steps of the training follow that compute nothing else. It is unsafe: gradients of float32 become more exact.

## When to ignore it

Where a custom `autograd.Function` counts on autocast in its backward pass; `torch.amp.custom_bwd` is made for that.

Holds for all supported versions of torch. Read in the documentation of `torch.autocast` of torch 2.13; with the CPU of
torch 2.13, the gradients of a linear layer under `autocast("cpu", enabled=False)` differ by half precision's rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile
from typing import NamedTuple

import libcst as cst

from torchlint.edits.operations import InsertAfter, RemoveStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import method_call
from torchlint.syntax.canonical import is_same

STEPS = ("backward", "step", "update", "unscale_", "zero_grad")
_PASSES_ON = ("scale", "parameters", "mean")
# What may compute in a backward pass with tensors of two dtypes.
_COUNTS_ON_CASTS = ("Function", "register_hook", "register_full_backward_hook")
CLIPS = frozenset(("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"))


class Block(NamedTuple):
    """A `with` statement, and the call that makes its context."""

    statement: cst.With
    context: cst.Call


rule = Rule(
    code="TL307",
    name="backward-in-autocast",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a backward pass inside the `autocast` block",
    triggers=Triggers.all_of("autocast", "backward"),
    examples=(
        Example(
            bad="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        with torch.autocast("cuda"):
            loss = model(x).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
""",
            good="""
import torch

def train(model, loader, optimizer):
    for x in loader:
        with torch.autocast("cuda"):
            loss = model(x).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/amp.html#torch.autocast",
        "https://docs.pytorch.org/docs/stable/notes/amp_examples.html",
    ),
    documentation=__doc__,
    silences={
        "outside": "The backward pass comes after the block, or the block is around the definition of its function.",
        "off": "The innermost block switches autocast off.",
        "engine": "The loss is given to an engine other than the one whose block it is, which may leave the block.",
        "own-method": "The file defines the class whose `backward` is called.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call, called=("backward",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a backward pass in an autocast block."""
    method = method_call(call, "backward")
    if method is None:
        return
    found, own = model.precision.around(call), _own_block(call, method, model)
    if found is not None and rule.silent("off", found.autocast.enabled is False):
        return
    block = own or (Block(found.statement, found.autocast.call) if found is not None else None)
    if block is None or rule.silent("engine", own is None and any(argument.keyword is None for argument in call.args)):
        return
    if rule.silent("own-method", model.own_method(method) is not None) or rule.silent("test", model.in_test(call)):
        return
    context = model.code(block.context.func)
    yield Finding(
        call,
        f"{model.shown(call, 'This backward pass')} runs inside `{context}`, which casts its operations too: gradients "
        "of what ran in float32 on purpose lose precision. Move it behind the block, which is only for the forward "
        "pass and the loss.",
        _fix(call, block, model),
    )


def _own_block(call: cst.Call, method: cst.Attribute, model: Model) -> Block | None:
    """Return the block of the engine that is given the loss: `with accelerator.autocast():`."""
    if not call.args or not isinstance(method.value, (cst.Name, cst.Attribute)):
        return None
    child: cst.CSTNode = call
    for ancestor in model.ancestors(call):
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)):
            return None
        if isinstance(ancestor, cst.With) and child is ancestor.body:
            for context in (item.item for item in ancestor.items):
                made = method_call(context, "autocast")
                if made is not None and isinstance(context, cst.Call) and is_same(made.value, method.value):
                    return Block(ancestor, context)
        child = ancestor
    return None


def _fix(call: cst.Call, block: Block, model: Model) -> Fix | None:
    """Return the fix that moves the backward pass and what follows it out of the block."""
    body = block.statement.body
    if model.mentions(*_COUNTS_ON_CASTS) and not model.mentions("custom_bwd"):
        return None
    if len(block.statement.items) != 1 or not isinstance(body, cst.IndentedBlock):
        return None
    kept, moved = _split(call, body, model)
    if not kept or not moved or not all(_can_move(line, model) for line in moved):
        return None
    return Fix(
        "Move the backward pass behind the block",
        (
            *(RemoveStatement(small) for line in moved for small in line.body),
            InsertAfter(block.statement, tuple(_shown(line, model) for line in moved)),
        ),
        Safety.UNSAFE,
        "Gradients of what ran in float32 inside the block are no longer cast to half precision, nor is what functions "
        "of autograd and hooks of other files compute.",
    )


def _shown(line: cst.SimpleStatementLine, model: Model) -> str:
    """Return the statements of a line as they stand on it, without a semicolon that nothing follows."""
    bare = (small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for small in line.body)
    return "; ".join(map(model.code, bare))


def _split(
    call: cst.Call, body: cst.IndentedBlock, model: Model
) -> tuple[list[cst.CSTNode], list[cst.SimpleStatementLine]]:
    """Return the lines of a block before a call and those from it on; no lines where it does not stand in the block."""
    moved = list(dropwhile(lambda line: not model.within(call, line), body.body))
    lines = [line for line in moved if isinstance(line, cst.SimpleStatementLine)]
    return list(body.body[: len(body.body) - len(moved)]), lines if len(lines) == len(moved) else []


def _can_move(line: cst.SimpleStatementLine, model: Model) -> bool:
    """Whether a line does nothing but a step of the training on one line of text, without a comment."""
    calls = [small.value for small in line.body if isinstance(small, cst.Expr)]
    if len(calls) != len(line.body) or "#" in model.code(line) or "\n" in model.code(line).strip():
        return False
    return not any(_computes(made, model) for made in calls) and all(
        method_call(made, *STEPS) is not None or (isinstance(made, cst.Call) and model.callee(made) in CLIPS)
        for made in calls
    )


def _computes(made: cst.BaseExpression, model: Model) -> bool:
    """Whether something below a step computes in the types of autocast, or calls what may: `step(closure)`."""
    calls = model.tree.below(made, cst.Call)
    others = [call for call in calls if call is not made and method_call(call, *_PASSES_ON) is None]
    given = (model.definition(argument.value) for call in calls for argument in call.args)
    operators = (each.operator for each in model.tree.below(made, cst.BinaryOperation))
    return bool(others) or any(isinstance(each, (cst.FunctionDef, cst.MatrixMultiply)) for each in (*given, *operators))
