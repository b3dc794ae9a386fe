"""A module that is compiled counts in an attribute, so that it is compiled anew for each value.

`self.step += 1` in the `forward` of a module that `torch.compile` gets, where `self.step` is a Python number that
`__init__` sets.

## Why it costs

`torch.compile` takes the integers that a module holds for constants, and guards the graph by their values: with each
new value the graph does not fit, and the forward pass is compiled again. After eight graphs of a function
(`torch._dynamo.config.recompile_limit`) it gives up and runs the module without compiling it. It does not matter
whether the number is used: a bare counter is enough. With torch 2.13 twenty calls of a module with such a counter made
eight graphs, also where a submodule counts, and one with the counter in a buffer.

## What to write instead

Count outside, in the loop that calls the model, or in a buffer: `self.register_buffer("step", torch.tensor(0))` and
`self.step += 1`. Where it must be a Python number, `torch._dynamo.config.allow_unspec_int_on_nn_module = True` makes it
a variable of the graph.

## When to ignore it

Where the number changes a few times only.

Holds for torch 2.0 and newer; measured with torch 2.13. Arguments, floats, and the integers of objects that are no
modules become variables of the graph with their second value: the rule is silent about them.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import literal
from torchlint.syntax.canonical import is_same

SETTING = "allow_unspec_int_on_nn_module"

rule = Rule(
    code="TL417",
    name="compiled-int-attribute",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ADVICE,
    summary="a compiled module counts in an attribute: one graph for each value",
    triggers=Triggers.all_of("torch", "compile", "forward"),
    examples=(
        Example(
            bad="""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.head(x)

net = torch.compile(Net())
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html",
    ),
    documentation=__doc__,
    silences={
        "not-compiled": "Nothing in the file compiles the module, or a decorator keeps the method out of the graph.",
        "not-int": "The attribute is a tensor, a float, or nothing says what it is.",
        "no-module": "The object is no module: its integers become variables of the graph after the second value.",
        "chosen": "It runs only if a flag asks for it.",
        "test": "The code belongs to a test.",
    },
)


@rule.check(cst.AugAssign, cst.Assign)
def check(node: cst.AugAssign | cst.Assign, model: Model) -> Iterator[Finding]:
    """Report a compiled method that changes a whole number of its module."""
    target = _counted(node)
    if target is None or not isinstance(target.value, cst.Name):
        return
    owner = model.definitions.receiver(target.value)
    if owner is None or rule.silent("not-int", not _is_int(owner, target.attr.value, node, model)):
        return
    if rule.silent("no-module", model.definitions.class_kind(owner) is not Kind.MODULE):
        return
    if rule.silent("not-compiled", not model.is_traced(node)) or rule.silent("chosen", model.chosen(node)):
        return
    if model.speaks_of(SETTING) or rule.silent("test", model.in_test(node)):
        return
    name = model.code(target)
    yield Finding(
        node,
        f"`{name}` is a Python number of a compiled module: the graph holds for one value of it. Each new value "
        "compiles the forward pass again, and after eight of them it runs uncompiled. Count outside, or in a buffer.",
    )


def _counted(node: cst.AugAssign | cst.Assign) -> cst.Attribute | None:
    """Return the attribute that a statement adds to: ``self.n += k`` or ``self.n = self.n + k``."""
    if isinstance(node, cst.AugAssign):
        return node.target if isinstance(node.target, cst.Attribute) else None
    target = node.targets[0].target
    value = node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or not isinstance(value, cst.BinaryOperation):
        return None
    return target if is_same(value.left, target) or is_same(value.right, target) else None


def _is_int(owner: cst.ClassDef, name: str, node: cst.AugAssign | cst.Assign, model: Model) -> bool:
    """Whether an attribute starts as a whole number, and whole numbers are all that is added to it."""
    starts = [a.value for a in model.definitions.attribute(owner, name) if model.statement(a.node) is not node]
    added: list[cst.BaseExpression]
    if isinstance(node, cst.AugAssign):
        added = [node.value]
    else:
        added = [node.value.left, node.value.right] if isinstance(node.value, cst.BinaryOperation) else []
    numbers = [value for value in starts if isinstance(literal(value), int)]
    steps = [value for value in added if not (isinstance(value, cst.Attribute) and value.attr.value == name)]
    return bool(numbers) and len(numbers) == len(starts) and all(_is_whole(value) for value in steps)


def _is_whole(value: cst.BaseExpression) -> bool:
    """Whether a step is a constant or a size."""
    if isinstance(literal(value), int):
        return not isinstance(literal(value), bool)
    if isinstance(value, cst.Subscript):
        return isinstance(value.value, cst.Attribute) and value.value.attr.value == "shape"
    return isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "len"
