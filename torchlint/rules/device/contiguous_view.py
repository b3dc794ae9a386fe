"""`x.contiguous().view(..)` copies a tensor that `x.reshape(..)` may be able to view.

## Why it costs

`contiguous` copies every tensor that does not lie in memory row by row, such as a slice or a part that `chunk` gives.
Many of them can be viewed in the new shape as they are: to split the last dimension into heads needs no copy.
`reshape` copies only where it must.

## What to write instead

`x.reshape(..)` with the same shape.

The fix is unsafe: the result may share memory with the tensor, where the copy did not, and need not lie row by row
itself. Where the file takes another `view` of the result there is no fix.

## When to ignore it

The result is written to and the tensor must keep its values, or what follows runs faster on memory that lies row by
row. The rule only reports parts that slices, `chunk` and `split` cut out of a larger tensor, in the dimension that the
view splits: after `transpose` and the like a copy is needed anyway, and what a layer gives lies row by row already.

Holds for all supported versions of torch; read in the documentation of `torch.reshape` and `torch.Tensor.view` of
torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace, Unwrap
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Role
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal, method_call

_CUTTING = ("chunk", "split", "tensor_split")

rule = Rule(
    code="TL213",
    name="contiguous-view",
    family=Family.DEVICE,
    since="0.1.0",
    default=Default.ADVICE,
    summary="`x.contiguous().view(..)` copies where `x.reshape(..)` may not have to",
    triggers=Triggers.all_of("contiguous", "view"),
    examples=(
        Example(
            bad="""
from torch import nn

class Heads(nn.Module):
    def forward(self, qkv):
        q, k, v = qkv.chunk(3, -1)
        return q.contiguous().view(*q.shape[:-1], 8, -1)
""",
            good="""
from torch import nn

class Heads(nn.Module):
    def forward(self, qkv):
        q, k, v = qkv.chunk(3, -1)
        return q.reshape(*q.shape[:-1], 8, -1)
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.reshape.html",
        "https://docs.pytorch.org/docs/stable/tensor_view.html",
    ),
    documentation=__doc__,
    silences={
        "not-hot": "The code does not run in every step.",
        "format": "`contiguous` is given a memory format.",
        "whole": "The tensor is not visibly cut out of a larger one in the dimension that the view splits: it may lie "
        "row by row already, or need a copy anyway, as after `transpose`, or where dimensions are merged.",
    },
    fixes=(Safety.UNSAFE,),
)


@rule.check(cst.Call, called=("view",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a view of a contiguous copy."""
    view = method_call(call, "view")
    copied = view.value if view is not None else None
    contiguous = method_call(copied, "contiguous")
    if view is None or contiguous is None or not isinstance(copied, cst.Call):
        return
    if rule.silent("format", bool(copied.args)):
        return
    if rule.silent("whole", not _splits_cut(call, contiguous.value, model)):
        return
    heat = model.heat(call)
    if heat is None or heat.role is Role.DATA:
        return
    shown = model.shown(contiguous.value, "the tensor")
    yield Finding(
        call,
        f"{shown} is a part of a larger tensor, which `contiguous` copies {heat.often}. To split its dimension needs "
        "no copy: `reshape` makes a view.",
        _fix(call, view, copied, contiguous, model),
    )


def _splits_cut(view: cst.Call, tensor: cst.BaseExpression, model: Model) -> bool:
    """Whether a view only splits the dimension in which a part was cut out of a larger tensor."""
    cuts = [tensor]
    if isinstance(tensor, cst.Name):
        found = model.reaching(tensor)
        assigned = [b.value for b in found if b.kind is BindingKind.ASSIGNMENT and b.value is not None]
        cuts = assigned if len(assigned) == len(found) else []
    return bool(cuts) and all(_splits(view, _cut_dimension(cut, model)) for cut in cuts)


def _splits(view: cst.Call, dimension: int | None) -> bool:
    if dimension is None:
        return False
    if dimension >= 0:
        return len(view.args) > dimension + 1 and not any(argument.star for argument in view.args)
    first = view.args[0].value
    shape = first.value if isinstance(first, cst.Subscript) else first
    is_rest = isinstance(first, cst.Subscript) and isinstance(shape, cst.Attribute) and shape.attr.value == "shape"
    bounds = first.slice[0].slice if isinstance(first, cst.Subscript) else None
    but_last = isinstance(bounds, cst.Slice) and bounds.lower is None and literal(bounds.upper) == -1
    return view.args[0].star == "*" and is_rest and but_last and len(view.args) > 2


def _cut_dimension(cut: cst.BaseExpression, model: Model) -> int | None:
    """The dimension in which an expression takes a part of a tensor, -1 for the last one."""
    if isinstance(cut, cst.Subscript) and len(cut.slice) > 1:
        *before, last = (element.slice for element in cut.slice)
        whole = all(isinstance(b, cst.Slice) and b.lower is None and b.upper is None and b.step is None for b in before)
        is_part = isinstance(last, cst.Slice) and last.step is None and not (last.lower is None and last.upper is None)
        return len(before) if whole and is_part else None
    call = cut.value if isinstance(cut, cst.Subscript) else cut
    if not isinstance(call, cst.Call) or method_call(call, *_CUTTING) is None:
        return None
    dimension = literal(model.arguments(call, ("pieces", "dim")).get("dim"))
    return dimension if isinstance(dimension, int) and dimension != 0 and dimension >= -1 else None


def _fix(call: cst.Call, view: cst.Attribute, copied: cst.Call, contiguous: cst.Attribute, model: Model) -> Fix | None:
    parent = model.parent(call)
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    again = isinstance(parent, cst.Attribute) and parent.attr.value in ("view", "view_as", "data_ptr")
    if again or (target is not None and "view" in model.evaluator.usage.attributes(target)):
        return None
    return Fix(
        "Use `reshape`",
        (Replace(view.attr, "reshape"), Unwrap(copied, contiguous.value)),
        Safety.UNSAFE,
        "The result may share memory with the tensor, and need not lie in memory row by row.",
        Evidence.INFERRED,
    )
