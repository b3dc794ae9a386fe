"""The values of a tensor are read by `.data`, which hides from autograd what is done to them.

## Why it costs

`x.data` and `x.detach()` share the memory of `x` and have no graph. They differ once the memory is written to: autograd
knows of a change by way of `.detach()`, and `backward()` raises where it needs the value from before; of one by way of
`.data` it knows nothing, and the gradients are wrong. To read a number or a shape neither is needed.

## What to write instead

`x.detach()`; `x.item()` and `x.shape` for `x.data.item()` and `x.data.shape`; `with torch.no_grad():` around what
changes a tensor in place. The fix writes the first two. It is unsafe in that a `backward()` can raise that went on with
wrong values before.

## When to ignore it

Where a change is to stay hidden. The rule only reports reads: it is silent about parameters and their gradients, whose
`.data` optimizers, averages and initialisations write to, and wherever the result is changed in place.

Holds for all supported versions of torch. Read in "In-place correctness checks" of the notes on autograd mechanics of
torch 2.13 and in the migration guide of torch 0.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Edit, Replace, Unwrap
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.values import Origin, Value
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

PARAMETER = re.compile(r"param|weight|bias|buffer|embedding|^p$|^grad$|_op$")
PACKED = ("PackedSequence", "pack_padded_sequence", "pack_sequence")
PLAIN_READS = frozenset(
    "item tolist shape size dim ndim numel dtype device is_cuda device layout nelement stride is_contiguous".split()
)
VIEWS = frozenset(
    "view view_as reshape squeeze unsqueeze flatten ravel t transpose permute expand expand_as narrow select "
    "contiguous to cpu cuda float double detach".split()
)
WHY = "`backward()` can raise where it went on with wrong values before: it sees changes of what `.detach()` gives."

rule = Rule(
    code="TL315",
    name="use-data-attribute",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a tensor is read by `.data` instead of `.detach()`",
    triggers=Triggers.all_of("data", "torch"),
    examples=(
        Example(
            bad="import torch\n\ndef watch(x, seen):\n    loss = torch.mean(x**2)\n    seen.append(loss.data)\n",
            good="import torch\n\ndef watch(x, seen):\n    loss = torch.mean(x**2)\n    seen.append(loss.detach())\n",
        ),
        Example(
            bad="import torch\n\ndef watch(x):\n    return torch.mean(x**2).data.item()\n",
            good="import torch\n\ndef watch(x):\n    return torch.mean(x**2).item()\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
        "https://pytorch.org/blog/pytorch-0_4_0-migration-guide/",
    ),
    documentation=__doc__,
    silences={
        "written": "The result is changed in place, or may be: assigned to, an argument of a function out of sight.",
        "parameter": "It is a parameter, a buffer or a gradient.",
        "record": "The code asks of which class it is, assigns to its `.data`, or packs sequences: it may be a record.",
        "unknown": "Nothing shows that it is a tensor: it may be a record, a batch or a setting of this name.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Attribute)
def check(attribute: cst.Attribute, model: Model) -> Iterator[Finding]:
    """Report ``.data`` of a tensor that is only read."""
    if attribute.attr.value != "data" or model.qualified_name(attribute) is not None:
        return
    if rule.silent("written", not _is_read(attribute, model)):
        return
    value = model.value(attribute.value)
    if rule.silent("unknown", not _is_computed(value)):
        return
    named = identifier(attribute.value)
    if rule.silent("parameter", value.origin is Origin.PARAMETER or bool(PARAMETER.search(named))):
        return
    if rule.silent("record", model.names_any_of(*PACKED) or _is_asked(attribute.value, model)):
        return
    text = model.shown(attribute.value, "the tensor")
    plain = _plain_read(attribute, model)
    instead = f"Drop it before `.{plain}`." if plain else "Write `.detach()`."
    edit: Edit = (
        Unwrap(attribute, attribute.value) if plain else Replace(attribute, f"{model.code(attribute.value)}.detach()")
    )
    yield Finding(
        attribute,
        f"`.data` of {text} hides from autograd what is done to the result: gradients can be wrong without an error. "
        f"{instead}",
        Fix("Drop `.data`" if plain else "Write `.detach()`", (edit,), Safety.UNSAFE, WHY, Evidence.INFERRED),
    )


def _is_computed(value: Value) -> bool:
    """Whether a value is certainly a tensor that was computed: what a loader gives can be a record."""
    return value.is_tensor and value.evidence >= Evidence.INFERRED and value.origin is not Origin.BATCH


def _is_asked(receiver: cst.BaseExpression, model: Model) -> bool:
    """Whether the function tests what class something is of, or assigns to its ``.data``."""
    function = model.enclosing_function(receiver)
    for call in model.nodes(cst.Call):
        asks = identifier(call.func) in ("isinstance", "hasattr") and model.enclosing_function(call) is function
        if asks and call.args and is_same(call.args[0].value, receiver):
            return True
    targets = (target.target for target in model.nodes(cst.AssignTarget))
    written = (t for t in targets if isinstance(t, cst.Attribute) and t.attr.value == "data")
    return any(is_same(target.value, receiver) for target in written)


def _plain_read(attribute: cst.Attribute, model: Model) -> str:
    """Return the attribute of ``x.data`` that is read of ``x`` itself as well, empty if there is none."""
    outer = model.parent(attribute)
    name = outer.attr.value if isinstance(outer, cst.Attribute) else ""
    return name if name in PLAIN_READS else ""


def _is_read(attribute: cst.Attribute, model: Model) -> bool:
    """Whether what ``.data`` gives is read and nothing else: no target, no receiver of a change in place."""
    node: cst.CSTNode = attribute
    parent = model.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Subscript, cst.Call)):
        if isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_"):
            return False
        node, parent = parent, model.parent(parent)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del, cst.AnnAssign, cst.NamedExpr, cst.For)):
        return False
    if isinstance(parent, cst.Assign):
        return _copies(node, attribute)
    if isinstance(parent, cst.Arg):
        call = model.parent(parent)
        known = model.callee(call) if isinstance(call, cst.Call) else None
        is_torch = known is not None and known.startswith(("torch.", "numpy.", "builtins.")) and known[-1] != "_"
        is_kept = method_call(call, "append") is not None
        return (is_torch and parent.keyword is None) or is_kept or _copies(node, attribute)
    return True


def _copies(node: cst.CSTNode, attribute: cst.Attribute) -> bool:
    """Whether something is computed of ``.data`` before it goes on, so that the tensor itself stays as it is."""
    if node is attribute or not isinstance(node, cst.Call):
        return False
    view = method_call(node, *VIEWS)
    return view is None or _copies(view.value, attribute)  # what is written to a view is written to the tensor
