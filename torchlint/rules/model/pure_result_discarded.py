"""The result of a tensor method that changes nothing is dropped.

`x.add(y)`, `x.to(device)`, `torch.clamp(x, 0, 1)` as a statement of its own, on a tensor.

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
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.tables import pure_methods as tables
from torchlint.semantics.tables.pure_methods import IN_PLACE_TOO, MOVES, PURE_METHODS
from torchlint.semantics.values import Origin
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

METHODS = IN_PLACE_TOO | MOVES | PURE_METHODS
WARM_UP = frozenset("mm bmm matmul".split())
"""Functions that are run for their own sake, where no method would be."""
MEASURES = re.compile(
    r"^synchronize$|CUDAGraph|memory_(allocated|reserved|stats|summary)|peak_memory|tracemalloc|[Ff]lop_?[Cc]ounter"
)
CHECKS = re.compile(r"^_*(check|assert|validate|verify|probe|ensure|warm|bench\w*|profile)(_|$)|warm_?up")
# Contexts in which an operation whose result is dropped has no effect either.
PLAIN_CONTEXTS = re.compile(
    r"grad|inference_mode|autocast|amp|^device$|^open$|^no_sync$|tqdm|[Pp]rogress|accumulate|nullcontext|[Ll]ock|[Pp]ool|_rng$|_context$"
)

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
        "measured": "Time, memory or operations are measured around it.",
        "expected-error": "It stands in a `try`, or its function checks something: the question is whether it fails.",
        "watched": "A mode, a hook or the capture of a graph looks on, or a loop does nothing else.",
        "structure": "It may be a graph, an encoding or a batch of them, which move themselves.",
        "shown": "The statement stands outside of functions and loops, where a notebook or a console shows the value.",
        "temporary": "The tensor is made in the same statement: nothing was to be kept, it wakes up the device.",
        "not-a-tensor": "The object is a module, an array, a set, or nothing says what it is.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=METHODS)
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a statement that computes a tensor and drops it."""
    name, after = identifier(call.func), _changed_by(call, model)
    statement = model.parent(after or call)
    owner = _owner(call, model) if isinstance(statement, cst.Expr) else None
    if owner is None or not isinstance(statement, cst.Expr):
        return
    is_outside = model.enclosing(statement, cst.FunctionDef, cst.ClassDef, cst.For, cst.While) is None
    if rule.silent("shown", is_outside) or rule.silent("temporary", _is_temporary(owner, model)):
        return
    value = model.value(owner)
    if rule.silent("not-a-tensor", not value.is_tensor or value.evidence is Evidence.NAMED):
        return
    if rule.silent("structure", name in tables.MOVING and _may_move_itself(owner, model)):
        return
    if rule.silent("in-place", model.arguments(call, ()).get("out") is not None):
        return
    is_tried = _is_tried(statement, model)
    if rule.silent("expected-error", is_tried) or rule.silent("watched", _is_watched(statement, model)):
        return
    if rule.silent("measured", _is_measured(statement, model)):
        return
    form = f".{name}" if isinstance(call.func, cst.Attribute) and call.func.value is owner else f"torch.{name}"
    is_parameter = value.origin is Origin.PARAMETER  # which takes no tensor, and no change that is recorded
    in_place = f", or use `.{name}_()`{' under `torch.no_grad()`' if is_parameter else ''}"
    what = "moves and converts no tensor: it gives another one" if name in MOVES else "gives a new tensor"
    what += f", which `.{identifier(after.func)}()` changes" if after is not None else ""
    yield Finding(
        call,
        f"`{form}()` {what}, and {model.shown(owner, 'the tensor')} stays as it is: the result is dropped. "
        f"{'Compute with it' if is_parameter else 'Assign it'}{in_place if name in IN_PLACE_TOO else ''}.",
    )


def _changed_by(call: cst.Call, model: Model) -> cst.Call | None:
    """The call that changes a new tensor in place, and no other: `p.mul(2).add_(q)`."""
    after = model.parent(model.parent(call) or call)
    method = method_call(after) if isinstance(after, cst.Call) and identifier(call.func) in tables.NEW_MEMORY else None
    is_changed = method is not None and method.value is call and tables.CHANGES.match(method.attr.value) is not None
    return after if is_changed and isinstance(after, cst.Call) else None


def _owner(call: cst.Call, model: Model) -> cst.BaseExpression | None:
    """The tensor of which a method, or a function of torch of that name, computes another one."""
    name = identifier(call.func)
    if name in METHODS and model.qualified_name(call.func) == f"torch.{name}":
        is_plain = bool(call.args) and call.args[0].keyword is None and not any(a.star for a in call.args)
        return call.args[0].value if is_plain and name not in WARM_UP and not _is_all(call, cst.For, model) else None
    function = method_call(call, *METHODS)
    return function.value if function is not None else None


def _is_temporary(owner: cst.BaseExpression, model: Model) -> bool:
    """Whether a chain of methods begins with what the statement makes, or has changed its tensor in place by then."""
    while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
        if owner.func.attr.value.endswith("_"):
            return True
        if not model.value(owner.func.value).is_tensor:
            break
        owner = owner.func.value
    return isinstance(owner, cst.Call)


def _may_move_itself(owner: cst.BaseExpression, model: Model) -> bool:
    """Whether a batch, a part of one, or what a model gives may be a structure, whose methods work in place."""
    if isinstance(owner, cst.Attribute):
        return not (isinstance(owner.value, cst.Name) and model.definitions.receiver(owner.value) is not None)
    if model.value(owner).origin not in (Origin.BATCH, Origin.OUTPUT):
        return False
    if (
        isinstance(owner, cst.Name)
        and _is_unpacked(owner, model)
        and not model.evaluator.usage.as_tensor(owner, or_array=True)
    ):
        return True
    imports = model.evaluator.scopes.imports
    if any(map(imports, tables.MOVING_THEMSELVES)) or model.evaluator.usage.attributes(owner) & tables.OF_STRUCTURES:
        return True
    return any(argument.star == "**" and is_same(argument.value, owner) for argument in model.nodes(cst.Arg))


def _is_unpacked(name: cst.Name, model: Model) -> bool:
    """Whether a loop over a loader binds a name to a part of each batch."""
    bindings = model.evaluator.flow.definitions(name)
    return bool(bindings) and all(binding.kind is BindingKind.ITERATION and binding.path for binding in bindings)


def _is_tried(statement: cst.Expr, model: Model) -> bool:
    """Whether it is the question whether a statement fails: by a handler, ``raises``, or the name of the function."""
    handlers = [h for node in model.ancestors(statement) if isinstance(node, cst.Try) for h in node.handlers]
    if any(handler.type is None or identifier(handler.type) != "KeyboardInterrupt" for handler in handlers):
        return True
    around = model.enclosing_function(statement)
    return around is not None and CHECKS.search(around.name.value) is not None


def _is_watched(statement: cst.Expr, model: Model) -> bool:
    """Whether something looks on: a mode or hooks of torch, the capture of a graph; or the work itself is wanted."""
    contexts = (item.item for node in model.ancestors(statement) if isinstance(node, cst.With) for item in node.items)
    names = (identifier(context.func if isinstance(context, cst.Call) else context) for context in contexts)
    if any(PLAIN_CONTEXTS.search(name) is None for name in names):
        return True
    return _is_all(statement, cst.While, model)


def _is_all(node: cst.CSTNode, kind: type[cst.For | cst.While], model: Model) -> bool:
    """Whether the loop around a node does nothing else than such statements."""
    loop = model.enclosing(node, kind)
    lines = [n for n in model.descendants(loop.body) if isinstance(n, cst.SimpleStatementLine)] if loop else []
    return bool(lines) and all(isinstance(part, cst.Expr) for line in lines for part in line.body)


def _is_measured(statement: cst.Expr, model: Model) -> bool:
    """Whether the function around reads a clock, or asks for the memory or the operations that something takes."""
    around = model.enclosing_function(statement) or model.enclosing(statement, cst.For, cst.While) or statement
    return any(
        model.conditions.reads_clock(part)
        if isinstance(part, cst.Call)
        else MEASURES.search(identifier(part)) is not None
        for part in model.descendants(around)
        if isinstance(part, (cst.Call, cst.Name, cst.Attribute))
    )
