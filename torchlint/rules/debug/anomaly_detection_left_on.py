"""Autograd's anomaly detection is switched on in every run, not only while somebody looks for a NaN.

`torch.autograd.set_detect_anomaly(True)`, `with torch.autograd.detect_anomaly():` and Lightning's
`Trainer(detect_anomaly=True)` are aids for finding the operation that gives a NaN gradient.

## Why it costs

The forward pass formats and stores a Python stack trace for every operation that it records. The backward pass looks
at every gradient that every operation gives for NaN, and waits for the answer: on a GPU each look is a
synchronisation. PyTorch's own page says that the mode "should be enabled only for debugging as the different tests
will slow down your program execution". A training step that is bound by launching kernels becomes several times
slower.

## What to write instead

Nothing: remove the call, or move the body of the `with` one level out. To keep the aid at hand, let a flag decide:
`torch.autograd.set_detect_anomaly(args.detect_anomaly)`.

The fix is safe: a run without NaN in its gradients computes the same values. A run *with* one no longer raises
`RuntimeError`; a check of `torch.isfinite(loss)` every few hundred steps is a cheap replacement. Where something in the
file may catch that error and go on, it is unsafe; where the file asks whether the mode is on, there is none.

## When to ignore it

In a script whose purpose is to find the NaN. The rule is silent where a flag or an argument switches the mode on, in
tests, and where a `try` around the backward pass, or around the call of the function of one step, catches the error,
since then it decides what the program does; a `try` around the whole run, which logs what ended it, decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Dedent, Edit, RemoveStatement, RemoveWithItem, Replace
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import literal

SET = "torch.autograd.set_detect_anomaly"
CONTEXT = "torch.autograd.detect_anomaly"
TRAINER = "lightning.pytorch.Trainer"
CAUGHT = "What catches errors in this file no longer catches that of the mode, and goes on with the NaN."
TRACES = ("is_anomaly_enabled", "is_anomaly_check_nan_enabled", "catch_warnings")
"""Where a program can see the mode: its state, and the warning that it gives."""

rule = Rule(
    code="TL601",
    name="anomaly-detection-left-on",
    family=Family.DEBUG,
    since="0.1.0",
    default=Default.ON,
    summary="autograd's anomaly detection is on in every run",
    triggers=Triggers.all_of(("set_detect_anomaly", "detect_anomaly")),
    examples=(
        Example(
            bad="import torch\n\ntorch.autograd.set_detect_anomaly(True)\nmodel = torch.nn.Linear(2, 2)\n",
            good="import torch\n\nmodel = torch.nn.Linear(2, 2)\n",
        ),
        Example(
            bad="import torch\n\nwith torch.autograd.detect_anomaly():\n    torch.ones(1).sum().backward()\n",
            good="import torch\n\ntorch.ones(1).sum().backward()\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",),
    documentation=__doc__,
    silences={
        "argument": "Whether the mode is on is decided by a variable, an option or a star argument.",
        "asked-for": "The code runs only if a flag or its caller asks for it, or after an error.",
        "control-flow": "A `try` within a step catches the error that the mode raises and goes on.",
        "window": "The mode is switched off after one backward pass outside all loops over steps, or by its class.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.SAFE, Safety.UNSAFE),
)


@rule.check(cst.Call)
def anomaly_mode(node: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call that switches the mode on."""
    name = model.callee(node)
    if name not in (SET, CONTEXT, TRAINER) or (name == CONTEXT and not _entered(node, model)):
        return
    switch = _switch(node, name, model)
    if switch is False or rule.silent("argument", switch is not True):
        return
    if rule.silent("asked-for", model.chosen(node)) or rule.silent("test", model.in_test(node)):
        return
    if rule.silent("control-flow", _decides(node, model)) or rule.silent("window", _switched_off_again(node, model)):
        return
    given = "(detect_anomaly=True)" if name == TRAINER else ""
    message = (
        f"`{model.code(node.func)}{given}` is on in every run: each operation then stores a stack trace and each "
        "gradient is searched for NaN, with a synchronisation. "
        "Remove it, or let a flag switch it on; without it a NaN in a gradient no longer raises."
    )
    yield Finding(node, message, _fix(node, name, model))


def _switch(call: cst.Call, name: str, model: Model) -> bool | None:
    """Return what a call sets the mode to, None where that is decided elsewhere."""
    if name == CONTEXT:
        return True
    parameter = "mode" if name == SET else "detect_anomaly"
    given = model.arguments(call)
    value = given.get(parameter)
    if value is None:
        return None if name == SET or given.open else False
    found = literal(value)
    return found if isinstance(found, bool) else None


def _entered(call: cst.Call, model: Model) -> bool:
    """Whether a context manager is entered where it is made; one that is only made does nothing."""
    parent = model.parent(call)
    if isinstance(parent, cst.WithItem):
        return True
    outer = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return (
        isinstance(outer, cst.Call)
        and isinstance(outer.func, cst.Attribute)
        and outer.func.attr.value == "enter_context"
    )


def _decides(call: cst.Call, model: Model) -> bool:
    """Whether an error of the mode is caught: around the call, or around a backward pass that the mode reaches."""
    item = model.parent(call)
    block = model.parent(item) if isinstance(item, cst.WithItem) else None
    passes = (c for c in model.nodes(cst.Call) if isinstance(c.func, cst.Attribute) and c.func.attr.value == "backward")
    reached = (c for c in passes if (model.within(c, block) if block is not None else not _in_own_mode(c, model)))
    return any(model.survives_error(each) or model.choices.may_be_skipped(each) for each in [call, *reached])


def _in_own_mode(call: cst.Call, model: Model) -> bool:
    contexts = (item.item for block in model.ancestors(call) if isinstance(block, cst.With) for item in block.items)
    return any(isinstance(c, cst.Call) and model.callee(c) in (SET, CONTEXT) for c in contexts)


def _switched_off_again(call: cst.Call, model: Model) -> bool:
    heat = model.heat(call)
    in_loop = heat is not None and isinstance(heat.root, (cst.For, cst.While))
    if in_loop or not isinstance(model.parent(call), cst.Expr):
        return False
    within = False
    for line in model.following(call):
        within = within or any(
            isinstance(n, cst.Attribute) and n.attr.value == "backward" for n in model.descendants(line)
        )
        modes = [_sets(small, model) for small in line.body] if isinstance(line, cst.SimpleStatementLine) else []
        if False in modes:
            return within
        if True in modes:  # what is switched on again has an end of its own
            break
    owner = model.enclosing(call, cst.ClassDef)
    return owner is not None and any(_sets(node, model) is False for node in model.descendants(owner))


def _sets(node: cst.CSTNode, model: Model) -> bool | None:
    """Return what a statement sets the mode to, None if it does not or that is decided elsewhere."""
    call = node.value if isinstance(node, cst.Expr) else None
    return _switch(call, SET, model) if isinstance(call, cst.Call) and model.callee(call) == SET else None


def _fix(call: cst.Call, name: str, model: Model) -> Fix | None:
    if _is_looked_at(model):
        return None
    edit, is_caught = _edit(call, name, model), model.choices.may_survive_errors()
    safety, why = (Safety.UNSAFE, CAUGHT) if is_caught else (Safety.SAFE, "")
    return Fix("Switch anomaly detection off", (edit,), safety, why) if edit is not None else None


def _is_looked_at(model: Model) -> bool:
    """Whether the file asks for the mode, or for what it leaves in the graph."""
    return model.speaks_of("metadata") or model.speaks_of(*TRACES) or model.names_any_of(*TRACES)


def _edit(call: cst.Call, name: str, model: Model) -> Edit | None:
    parent = model.parent(call)
    if isinstance(parent, cst.Expr):
        return RemoveStatement(parent) if name != TRAINER else _set_false(call, "detect_anomaly", model)
    if isinstance(parent, cst.WithItem):
        statement = model.parent(parent)
        if isinstance(statement, cst.With) and parent.asname is None and statement.asynchronous is None:
            return Dedent(statement) if len(statement.items) == 1 else RemoveWithItem(statement, parent)
        return None
    modes = [_switch(c, SET, model) for c in model.nodes(cst.Call) if name == SET and model.callee(c) == SET]
    if name == CONTEXT or None in modes:  # False would undo what an option has decided
        return None
    return _set_false(call, "mode" if name == SET else "detect_anomaly", model)


def _set_false(call: cst.Call, parameter: str, model: Model) -> Edit | None:
    value = model.arguments(call).get(parameter)
    return Replace(value, "False") if value is not None else None
