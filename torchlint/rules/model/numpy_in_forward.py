"""A forward pass computes with NumPy on the values of its tensors.

`np.sqrt(x)` of a tensor, `np.argsort(x.detach().cpu().numpy())`, and `torch.from_numpy(x.cpu().numpy())`, which goes to
NumPy and back, in the `forward` of a module or in what that calls.

## Why it costs

NumPy computes on the host: the values are copied there, for which the host waits until the GPU has done everything that
was queued, and back. What NumPy computes is a constant for autograd, so that no gradient comes through it, and
`torch.compile` and exports end the graph there.

## What to write instead

The function of torch: nearly all of NumPy's have one of the same name (`torch.sqrt`, `torch.argsort`, `torch.cumsum`,
`torch.quantile`, `torch.linalg`).

## When to ignore it

Where torch has no such function, or the forward pass only ever runs on the CPU.

Read in the documentation of `Tensor.numpy` and of `torch.compile` of torch 2.13, which can trace some of NumPy's
functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.heat.hotness import Heat, Role
from torchlint.semantics.model import Model
from torchlint.semantics.tables.names import NAMESAKES
from torchlint.semantics.values import Device, Kind
from torchlint.syntax.calls import identifier, literal, method_call

NUMPY = "numpy."
MODES = re.compile("^training$|export|tracing|scripting|onnx", re.IGNORECASE)
BACK = "torch.from_numpy"
MAKES_ARRAY = ("numpy.array", "numpy.asarray", "numpy.ascontiguousarray")

rule = Rule(
    code="TL415",
    name="numpy-in-forward",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="NumPy computes on the values of tensors in a forward pass",
    triggers=Triggers.all_of("torch", "numpy", "forward"),
    examples=(
        Example(
            bad="""
import numpy as np
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        order = np.argsort(x.detach().cpu().numpy())
        return x[torch.from_numpy(order)]
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    ),
    documentation=__doc__,
    silences={
        "no-tensor": "What NumPy computes with is no tensor: a size, a setting, an array that was given.",
        "not-computed": "The array goes to another library, or out of the function: NumPy computes nothing.",
        "evaluation": "It runs in evaluation only, while the model is exported, or is guarded by a flag.",
        "not-forward": "It is no forward pass: in a training loop TL203 reports the copy.",
        "on-cpu": "The tensor is known to live on the CPU.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.Call)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a copy to the host with which NumPy computes, and a function of NumPy that is given a tensor."""
    if method_call(call, "numpy") is not None and model.qualified_name(call.func) is None:
        tensor = model.host_reads.copied(call)
        if tensor is None or not model.host_reads.is_certainly_tensor(tensor):
            return
        function = _function(call, model)
        if rule.silent("not-computed", function is None):
            return
    else:
        name = model.qualified_name(call.func) or ""
        tensor = _given_tensor(call, model) if name.startswith(NUMPY) else None
        function = None if name in MAKES_ARRAY and _function(call, model) is None else call
        if tensor is None or function is None:
            return
    heat = _forward(call, model)
    if heat is None or rule.silent("on-cpu", model.value(tensor).device is Device.CPU):
        return
    evaluates = heat.evaluates or _asks_for_mode(call, model) or model.inference.only_evaluates(call)
    if rule.silent("evaluation", evaluates) or rule.silent("test", model.in_test(call)):
        return
    user = function or call
    does = "makes a tensor again of" if model.qualified_name(user.func) == BACK else "computes on the host with"
    yield Finding(
        call,
        f"`{model.code(user.func)}` {does} the values of {model.shown(tensor, 'a tensor')}, in every forward pass: the "
        f"host waits for the GPU, and no gradient comes through. {_cure(user, model)}.",
    )


def _cure(user: cst.Call, model: Model) -> str:
    name = model.qualified_name(user.func) or ""
    if name == BACK:
        return "Take the tensor itself, by `.detach()`"
    namesake = f"torch.{name.removeprefix(NUMPY)}"
    if namesake not in NAMESAKES:
        return "Use the function of torch"
    return f"Use `{model.spelling(namesake, user) or namesake}`"


def _forward(call: cst.Call, model: Model) -> Heat | None:
    heat = model.heat(call)
    if heat is None or rule.silent("not-forward", heat.role is not Role.FORWARD):
        return None
    return heat


def _asks_for_mode(call: cst.Call, model: Model) -> bool:
    """Whether the call only runs in one of the modes of its module, or while it is traced or exported."""
    tests = (node.test for node in model.ancestors(call) if isinstance(node, cst.If))
    return any(MODES.search(identifier(part)) for test in tests for part in model.descendants(test))


def _given_tensor(call: cst.Call, model: Model) -> cst.BaseExpression | None:
    """Return the argument of a call that is certainly a tensor."""
    given = (argument.value for argument in call.args if not argument.star)
    return next((value for value in given if not rule.silent("no-tensor", not _is_tensor(value, model))), None)


def _is_tensor(expression: cst.BaseExpression, model: Model) -> bool:
    value = model.value(expression)
    if value.kind is not Kind.TENSOR or value.evidence < Evidence.INFERRED:
        return False
    # Of a dictionary only its annotation can say so, and those of batches say it of sizes and names as well.
    keys = (e.slice[0].slice for e in model.tree.below(expression, cst.Subscript))
    return not any(isinstance(key, cst.Index) and isinstance(literal(key.value), str) for key in keys)


def _function(array: cst.BaseExpression, model: Model, depth: int = 3) -> cst.Call | None:
    """Return the function of NumPy that gets an array, directly or by the name that it is bound to."""
    parent = model.parent(array)
    call = model.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call):
        name = model.qualified_name(call.func) or ""
        if name in MAKES_ARRAY and depth > 0:
            return _function(call, model, depth - 1)
        return call if name.startswith(NUMPY) or name == BACK else None
    if not isinstance(parent, cst.Assign) or depth == 0 or len(parent.targets) != 1:
        return None
    target = parent.targets[0].target
    bindings = [b for b in model.bindings(target) if b.node is target] if isinstance(target, cst.Name) else []
    reads = (n for b in bindings if b.kind is BindingKind.ASSIGNMENT for n in model.uses(b) if n is not target)
    reached = (n for n in reads if any(found.node is target for found in model.reaching(n)))
    return next((found for n in reached if (found := _function(n, model, 0)) is not None), None)
