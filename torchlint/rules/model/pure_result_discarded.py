"""The result of a tensor method that changes nothing is dropped.

`x.add(y)`, `x.to(device)`, `x.clamp(0, 1)` as a statement of its own, on a tensor.

## Why it costs

Methods of tensors without an underscore at the end give a new tensor and leave the old one as it is. A statement
`x.add(y)` computes a sum and throws it away; after `x.to(device)` the tensor is where it was, and the next line fails
or runs on the CPU. (A module moves itself with `.to`; a tensor does not.) Read in the documentation of torch 2.13.

## What to write instead

`x = x.add(y)`, or the form that works in place, `x.add_(y)`, where there is one and nothing else needs the old values.
There is no fix, since these differ.

## When to ignore it

Where only the time of the call is of interest. The rule is silent where something is measured, where an error is
expected, and outside of functions and loops, where a notebook's cell shows the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.syntax.calls import identifier, method_call

IN_PLACE_TOO = frozenset(
    "abs add addcmul addmm atan2 bitwise_and ceil clamp clip cos cumprod cumsum detach div divide erf exp expm1 floor "
    "fmod lerp log log10 log1p log2 logical_and logical_not logical_or masked_fill masked_scatter mul multiply "
    "nan_to_num neg pow reciprocal relu remainder round rsqrt scatter scatter_add sigmoid sign sin sqrt square squeeze "
    "sub subtract tan tanh transpose trunc unsqueeze".split()
)
MOVES = frozenset("to cuda cpu float double half bfloat16 int long bool type type_as".split())
OTHERS = frozenset(
    "amax amin argmax argmin bmm clone contiguous expand flatten flip gather index_select log_softmax masked_select "
    "matmul mean mm permute prod repeat reshape roll softmax std sum unfold var view where".split()
)
METHODS = IN_PLACE_TOO | MOVES | OTHERS
CLOCKS = frozenset("perf_counter time Timer timeit synchronize record elapsed_time profile benchmark".split())
WARMS_UP = re.compile(r"warm|bench|time|profile", re.IGNORECASE)

rule = Rule(
    code="TL413",
    name="pure-result-discarded",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="a tensor method whose result is dropped, and that changes nothing else",
    triggers=Triggers.all_of("torch", METHODS),
    examples=(Example(bad="import torch\n\ndef ones():\n    x = torch.ones(3)\n    x.mul(2)\n    return x\n"),),
    references=("https://docs.pytorch.org/docs/stable/tensors.html",),
    documentation=__doc__,
    silences={
        "in-place": "The name ends in an underscore, or `out=` takes the result.",
        "used": "The result is assigned, returned, or handed on.",
        "measured": "Something in the function around measures time, or its name says that it warms up.",
        "expected-error": "The statement stands in a `try` or under `raises`: whether it fails is the question.",
        "shown": "The statement stands outside of functions and loops, where a notebook or a console shows the value.",
        "temporary": "The tensor is made in the same statement: nothing was to be kept, it wakes up the device.",
        "not-a-tensor": "The object is a module, an array, a set, or nothing says what it is.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=METHODS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a statement that computes a tensor and drops it."""
    function, statement = method_call(call, *METHODS), model.parent(call)
    if function is None or not isinstance(statement, cst.Expr):
        return
    if rule.silent("shown", _is_shown(statement, model)) or rule.silent(
        "temporary", isinstance(function.value, cst.Call)
    ):
        return
    value = model.value(function.value)
    if rule.silent("not-a-tensor", not value.is_tensor or value.evidence is Evidence.NAMED):
        return
    if rule.silent("in-place", model.arguments(call, ()).get("out") is not None):
        return
    if rule.silent("expected-error", model.enclosing(statement, cst.Try) is not None or _is_expected(statement, model)):
        return
    if rule.silent("measured", _is_measured(statement, model)):
        return
    name = function.attr.value
    what = "moves and converts no tensor: it gives another one" if name in MOVES else "gives a new tensor"
    yield Finding(
        call,
        f"`.{name}()` {what}, and {model.shown(function.value, 'the tensor')} stays as it is: the result is dropped. "
        f"Assign it{f', or use `.{name}_()`' if name in IN_PLACE_TOO else ''}.",
    )


def _is_shown(statement: cst.Expr, model: Model) -> bool:
    return model.enclosing(statement, cst.FunctionDef, cst.ClassDef, cst.For, cst.While) is None


def _is_expected(statement: cst.Expr, model: Model) -> bool:
    around = [node for node in model.ancestors(statement) if isinstance(node, cst.With)]
    names = (identifier(item.item.func) for node in around for item in node.items if isinstance(item.item, cst.Call))
    return any(name in ("raises", "suppress", "warns") or name.startswith("assertRaises") for name in names)


def _is_measured(statement: cst.Expr, model: Model) -> bool:
    around = model.enclosing_function(statement)
    if around is not None and WARMS_UP.search(around.name.value):
        return True
    loop = model.enclosing(statement, cst.For, cst.While)
    parts = model.descendants(around or loop or statement)
    return any(identifier(part) in CLOCKS for part in parts)
