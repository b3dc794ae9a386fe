"""Attention is written out, where torch has a function for it.

`torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1) @ v`, with or without a mask and dropout, in one expression or
in several statements, by `matmul` or `einsum`, whichever dimension comes last in the equation.

## Why it costs

The scores of all queries for all keys are written to memory, and read and written again by the scaling, the mask, the
softmax and the dropout: `L * S` numbers for each head, most of which are kept for the backward pass. The fused kernels
behind `torch.nn.functional.scaled_dot_product_attention` keep them in registers, block after block.

## What to write instead

```python
F.scaled_dot_product_attention(
    q, k, v,
    attn_mask=mask,  # True where a query may look, or what is added to the scores; is_causal=True instead of a triangle
    dropout_p=self.dropout.p if self.training else 0.0,
    scale=scale,  # 1 / sqrt(q.size(-1)) if it is left out
)
```

The fix is offered where only a scale and an `nn.Dropout` stand between the two products, and the project asks for
torch 2.1, which has `scale=`. It is unsafe: sums are taken in another order, dropout draws other numbers, the result
may lie otherwise in memory, and hooks in between do not run.

## When to ignore it

Where second derivatives are taken, or forward-mode ones, which the kernels lack (a file that does so is passed over),
where hooks look at the weights, where the model is exported to something that does not know the function, or where the
sequences are short (windows of 7 by 7). On one core of a CPU torch 2.13 took 0.36 of the time for 1024 keys of 64
channels, 0.55 for 256, and the same for 49; with the backward pass 0.57 for 1024, but 1.5 for 256. There it has no
fused kernel with dropout, which takes as long as before.

Holds for torch 2.0 and newer. Read in the documentation of `scaled_dot_product_attention` of torch 2.13, whose fused
kernels take tensors with four dimensions: `(batch, heads, length, channels)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from torchlint.edits.operations import Edit, RemoveStatement, Replace
from torchlint.edits.renaming import from_root, spelled
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.operators.attention import Attention
from torchlint.semantics.operators.sizes import is_number
from torchlint.syntax.calls import identifier, literal

FUSED = "torch.nn.functional.scaled_dot_product_attention"
KERNELS = ("attention", "flash", "attn_func", "sdpa")
NEEDS_LAYOUT = ("view", "view_as", "stride", "as_strided", "is_contiguous", "data_ptr", "resize_")

rule = Rule(
    code="TL402",
    name="manual-attention",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="attention written out by hand: `softmax(q @ k.T) @ v`",
    triggers=Triggers.all_of(
        "torch", ("softmax", "Softmax"), ("transpose", "permute", "swapaxes", "swapdims", "mT", "mH", "einsum")
    ),
    examples=(
        Example(
            bad="""
import torch

def attend(q, k, v, scale):
    weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
    return weights @ v
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    ),
    documentation=__doc__,
    silences={
        "weights-kept": "The weights or scores are also returned, stored or worked on in a way that is no mask.",
        "not-attention": "It is no softmax over the keys between two products with matching dimensions.",
        "fused-too": "The class or function has a fused kernel as well: this is the other branch.",
        "learned-scale": "The product is scaled by a tensor, as in attention over channels or between directions.",
        "dimensions": "The tensors have three dimensions, or five, or positions are the last: the kernels take four.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the softmax of an attention that is written out."""
    found = model.attention(call)
    is_other = found is not None and (found.rank not in (None, 4) or found.is_over_channels)
    if found is None or model.differentiates_twice or rule.silent("dimensions", is_other):
        return
    if model.target.lacks((2, 0)) or rule.silent("test", model.in_test(call)):
        return
    if rule.silent("learned-scale", any(model.value(scale).is_tensor for scale, _ in found.scales)):
        return
    if rule.silent("fused-too", _is_fused_elsewhere(call, model)):
        return
    yield Finding(
        call,
        f"The scores of {model.shown(found.query, 'the queries')} and {model.shown(found.key, 'the keys')}, one for "
        "each pair, are written to memory and read again in each step from one product to the other. "
        "`F.scaled_dot_product_attention` computes the same without keeping them.",
        _fix(call, found, model),
    )


def _is_fused_elsewhere(call: cst.Call, model: Model) -> bool:
    """Whether the class or function around a call also calls a function whose name speaks of a fused kernel."""
    around = model.enclosing(call, cst.ClassDef) or model.enclosing_function(call)
    calls = model.nodes(cst.Call) if around is None else model.tree.below(around, cst.Call)
    return any(any(word in identifier(c.func).lower() for word in KERNELS) and _is_kernel(c) for c in calls)


def _is_kernel(call: cst.Call) -> bool:
    return identifier(call.func).islower() and len(call.args) >= 3


def _fix(call: cst.Call, found: Attention, model: Model) -> Fix | None:
    options = _options(found, model)
    is_seen = bool(found.statements) and model.enclosing_function(call) is None  # names of a module or a class
    if options is None or model.target.version < (2, 1) or found.others or is_seen:
        return None
    inputs = (found.query, found.key, found.value)
    if not all(model.is_plain(part) for part in inputs) or model.writes.may_break_backward(found.result):
        return None
    if not _is_one_run(found.statements, found.result, model) or _needs_layout(found.result, model):
        return None
    function = call.func
    if isinstance(function, (cst.Name, cst.Attribute)):
        name = from_root(function, FUSED, model)
    else:
        name = spelled(FUSED, function, model)
    if name is None:
        return None
    removed: list[Edit] = [RemoveStatement(one) for one in found.statements if isinstance(one, cst.Assign)]
    return Fix(
        "Call `scaled_dot_product_attention`",
        (*removed, Replace(found.result, f"{name.code}({', '.join(map(model.code, inputs))}{options})"), *name.imports),
        Safety.UNSAFE,
        "The sums are taken in another order, dropout draws other numbers, the layout in memory may differ, and hooks "
        "on the layers in between do not run. Values of one dimension are refused.",
        Evidence.INFERRED,
    )


def _options(found: Attention, model: Model) -> str | None:
    """Return the arguments for dropout and scale, None where they are not certain."""
    if len(found.scales) > 1 or len(found.dropouts) > 1:
        return None
    scale = "1.0"
    for number, divides in found.scales:
        if not is_number(number, model):
            return None
        text = model.code(number)
        is_simple = (
            isinstance(number, (cst.Call, cst.Name, cst.Attribute)) or literal(number) is not None or number.lpar
        )
        scale = text if not divides else f"1 / {text}" if is_simple else f"1 / ({text})"
    dropped = ""
    for call in found.dropouts:
        layer = model.value(call.func)
        if layer.name != "torch.nn.Dropout" or layer.evidence < Evidence.INFERRED or not model.is_plain(call.func):
            return None
        layer_code = model.code(call.func)
        dropped = f", dropout_p={layer_code}.p if {layer_code}.training else 0.0"
    return f"{dropped}, scale={scale}"


def _is_one_run(statements: Sequence[cst.CSTNode], result: cst.BaseExpression, model: Model) -> bool:
    """Whether nothing comes between the statements, each of which binds one name, and the one with the result."""
    run = [*statements, model.statement(result)]
    for statement, after in pairwise(run):
        following = next(iter(model.following(statement)), None)
        lines = following.body if isinstance(following, cst.SimpleStatementLine) else ()
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or list(lines) != [after]:
            return False
    return True


def _needs_layout(result: cst.BaseExpression, model: Model) -> bool:
    """Whether the result is viewed as it lies in memory, or goes where that cannot be seen."""
    parent = model.parent(result)
    users: list[cst.CSTNode | None] = [parent]
    if isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name):
        target = parent.targets[0].target
        users = [model.parent(name) for binding in model.bindings(target) for name in model.uses(binding)]
    return any(isinstance(user, cst.Attribute) and user.attr.value in NEEDS_LAYOUT for user in users)
