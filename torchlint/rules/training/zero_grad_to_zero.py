"""Gradients are filled with zeros before each step instead of being dropped.

`optimizer.zero_grad(set_to_none=False)`, `optimizer.zero_grad()` where torch can be older than 2.0, and loops that call
`p.grad.zero_()` or assign `torch.zeros_like(p)`.

## Why it costs

Zeroing writes every gradient once; the backward pass then reads it and adds to it. With `set_to_none=True` the gradient
is dropped: the backward pass stores its result without reading or adding, and the memory is free in between. That saves
one kernel launch for each parameter (or group of parameters) and two trips through memory for each gradient.

`set_to_none` exists since torch 1.7, for optimizers and modules; its default became `True` in torch 2.0.

## What to write instead

`optimizer.zero_grad(set_to_none=True)`; with torch 2.0 or newer `optimizer.zero_grad()`. State the version that the
project needs (`torch>=2.0` in its metadata, or `target-torch = "2.0"`), and the rule is silent about bare calls.

A parameter that gets no gradient in a step has `None` then instead of zeros: momentum, weight decay and Adam move it
under zeros and skip it under `None`, and code that reads `p.grad` must expect `None`. The fix is unsafe for that
reason, also where a file seems to give every parameter its gradient in every step: a layer that is frozen or replaced
elsewhere is enough, and no file shows that there is none. There is no fix beside CUDA graphs, which add to the
gradients that were there, nor beside apex.

## When to ignore it

Where the zeros are part of the algorithm: gradients that are reduced by hand between processes, or momentum that is
meant to go on for parameters without a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import AddKeyword, Edit, RemoveArgument, Replace, ReplaceStatement
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.definitions import parameters
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables.torch_api import MOCKS
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal

WHY = (
    "A parameter that gets no gradient in a step has None instead of zeros: momentum, weight decay and Adam still move "
    "it under zeros and skip it under None, and code that reads `.grad` sees None."
)
ASSUMED = " The optimizer may be none of torch's: its `zero_grad` must take the argument."
OTHER_OPTIMIZERS = "apex.optimizers."
"""Their `zero_grad` takes no argument and drops the gradients."""
GRAPHS = ("CUDAGraph", "make_graphed_callables")
FIRST_CHOICE = (1, 7)
"""`set_to_none` exists since then."""
OTHERS = frozenset((Kind.NDARRAY, Kind.STRING, Kind.NUMBER, Kind.DATASET, Kind.DATALOADER, Kind.DEVICE, Kind.BATCH))

rule = Rule(
    code="TL301",
    name="zero-grad-to-zero",
    family=Family.TRAINING,
    since="0.1.0",
    default=Default.ON,
    summary="gradients are filled with zeros instead of dropped",
    triggers=Triggers.all_of(("zero_grad", "grad")),
    examples=(
        Example(
            bad="from torch.optim import SGD\n\noptimizer = SGD(weights)\noptimizer.zero_grad(set_to_none=False)\n",
            good="from torch.optim import SGD\n\noptimizer = SGD(weights)\noptimizer.zero_grad(set_to_none=True)\n",
        ),
        Example(
            bad="from torch import nn\n\nnet = nn.Linear(2, 2)\nfor p in net.parameters():\n    p.grad.zero_()\n",
            good="from torch import nn\n\nnet = nn.Linear(2, 2)\nnet.zero_grad(set_to_none=True)\n",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    documentation=__doc__,
    silences={
        "argument": "`set_to_none` is True, or a variable or a star argument decides it.",
        "default": "A bare call, where torch is at least 2.0.",
        "own-method": "The class in this file that the receiver is an instance of defines `zero_grad` itself, as the "
        "optimizers of apex do, or a "
        "`zero_grad` hands on to something unknown, which may be another wrapper.",
        "not-torch": "The receiver is known to be neither an optimizer nor a module, or is a mock.",
        "selected": "A loop that zeroes the gradients of some parameters only: the zeros mask.",
        "buffer": "The definition around the loop computes into gradients in place, so that there must be some.",
    },
    fixes=(Safety.UNSAFE,),
    asks_project=True,
)


@rule.check(cst.Call, called=("zero_grad",))
def zero_grad(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a `zero_grad` call that keeps the gradients."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "zero_grad":
        return
    if model.gradient_clearing.has_nothing_to_clear:
        return  # the gradients that it would fill are None
    given, bare = model.arguments(node, ("set_to_none",)), not node.args
    if rule.silent("default", bare and model.target.version >= (2, 0)):
        return
    if rule.silent("argument", not bare and (given.open or literal(given.get("set_to_none")) is not False)):
        return
    receiver = model.value(node.func.value)
    is_other = (receiver.kind in OTHERS and receiver.evidence > Evidence.NAMED) or receiver.name in MOCKS
    if rule.silent("not-torch", is_other):
        return
    known = receiver.kind in (Kind.OPTIMIZER, Kind.MODULE) and receiver.evidence is Evidence.PROVEN
    known = known or model.evaluator.usage.has_parameters(node.func.value)
    handed_on = bare and not known and not _is_super(node.func.value) and _in_zero_grad(node, model)
    handed_on = handed_on or (receiver.name or "").startswith(OTHER_OPTIMIZERS)
    if rule.silent("own-method", handed_on or model.own_method(node.func) is not None):
        return
    yield Finding(node, _message(node, bare, model), _call_fix(node, model))


def _message(call: cst.Call, bare: bool, model: Model) -> str:
    what = f"`{model.code(call)}` fills every gradient with zeros"
    if bare:
        what += f" before torch 2.0 (target-torch is {model.target}: {model.target.origin})"
    if model.target.version < FIRST_CHOICE:
        instead = "From torch 1.7 on pass `set_to_none=True`, before assign `p.grad = None` to each parameter"
    else:
        instead = "Leave `set_to_none` out" if model.target.version >= (2, 0) else "Pass `set_to_none=True`"
    return (
        f"{what}: they are written, then read and added to by the backward pass. "
        f"{instead}, so that the gradients are dropped and stored anew."
    )


def _call_fix(call: cst.Call, model: Model) -> Fix | None:
    if not isinstance(call.func, cst.Attribute) or _overrides(call, model) or model.target.version < FIRST_CHOICE:
        return None
    clearing, given = model.gradient_clearing, model.arguments(call, ("set_to_none",)).nodes.get("set_to_none")
    if clearing.are_needed(call) or clearing.may_take_no_argument(call) or (given and clearing.are_read_beside(call)):
        return None  # dropping the gradients would part them from that tensor, or leave nothing to add to
    if model.mentions(*GRAPHS) or model.scopes.imports("apex"):
        return None  # a graph adds to the gradients that were there; apex puts another `zero_grad` in place
    edit: Edit = AddKeyword(call, "set_to_none", "True")
    if given is not None:
        dropped = model.target.version >= (2, 0)
        edit = RemoveArgument(call, given) if dropped else Replace(given.value, "True")
    message = "Leave `set_to_none` out" if isinstance(edit, RemoveArgument) else "Pass `set_to_none=True`"
    receiver = model.value(call.func.value)
    known = receiver.kind in (Kind.OPTIMIZER, Kind.MODULE)
    of_torch = known and (receiver.kind is Kind.MODULE or (receiver.name or "").startswith("torch."))
    why = WHY if of_torch or given is not None else f"{WHY}{ASSUMED}"
    return Fix(message, (edit,), Safety.UNSAFE, why, receiver.evidence if known else Evidence.NAMED)


def _is_super(receiver: cst.BaseExpression) -> bool:
    return isinstance(receiver, cst.Call) and identifier(receiver.func) == "super" and not receiver.args


def _in_zero_grad(node: cst.CSTNode, model: Model) -> bool:
    return (function := model.enclosing_function(node)) is not None and function.name.value == "zero_grad"


def _overrides(call: cst.Call, model: Model) -> bool:
    """Whether a call stands in a `zero_grad(self, set_to_none)`, which lets its own caller decide."""
    function = model.enclosing_function(call) if _in_zero_grad(call, model) else None
    return function is not None and any(each.name.value == "set_to_none" for each in parameters(function))


@rule.check(cst.Call, cst.Assign, cst.AugAssign, condition=lambda model: model.gradient_clearing.names_gradient)
def zeroing_loop(node: cst.Call | cst.Assign | cst.AugAssign, model: Model) -> Iterator[Finding]:
    """Report the statement of a loop that zeroes the gradient of each parameter."""
    cleared = model.cleared_gradients(node)
    if cleared is None or rule.silent("selected", bool(cleared.conditions)):
        return
    if rule.silent("buffer", model.buffers_gradients(node)):
        return
    owner = model.code(cleared.owner) if cleared.owner is not None else "optimizer"
    call = f"{owner}.zero_grad({'' if model.target.version >= (2, 0) else 'set_to_none=True'})"
    is_plain = cleared.owner is None and not model.speaks_of("step")
    instead = (
        "Assign None" if is_plain or model.target.version < FIRST_CHOICE else f"Write `{call}` in place of the loop"
    )
    message = (
        f"`{model.code(node).strip()}` fills the gradients with zeros one by one: a kernel for each, and the backward "
        f"pass then reads them and adds to them. {instead}."
    )
    yield Finding(node, message, _loop_fix(node, call, model))


def _loop_fix(node: cst.CSTNode, call: str, model: Model) -> Fix | None:
    cleared = model.cleared_gradients(node)
    if cleared is None or cleared.owner is None or not cleared.alone or not isinstance(cleared.loop, cst.For):
        return None
    are_read = model.gradient_clearing.is_read_after(cleared.loop) or model.gradient_clearing.are_needed(node)
    if are_read or _in_zero_grad(node, model) or model.target.version < FIRST_CHOICE:
        return None  # the zeros are wanted, or this is what the call would call, or cannot be called
    owner = model.value(cleared.owner)
    evidence = owner.evidence if owner.kind in (Kind.OPTIMIZER, Kind.MODULE) else Evidence.NAMED
    return Fix(f"Write `{call}`", (ReplaceStatement(cleared.loop, (call,)),), Safety.UNSAFE, WHY, evidence)
