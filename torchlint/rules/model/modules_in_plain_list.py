"""A module keeps others in a Python list or dictionary, where nothing knows that they belong to it.

`self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]`, also by `append`, a comprehension or a dictionary,
and lists of parameters.

## Why it costs

`nn.Module` registers modules that are assigned to an attribute, and those in an `nn.ModuleList` or `nn.ModuleDict`. It
does not look into lists. The layers in one are not in `parameters()`, so that the optimizer never trains them;
`.to(device)` leaves them on the CPU, `state_dict()` does not save them, and `eval()` does not reach them.

## What to write instead

`self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])`, `nn.ModuleDict({...})` for names, and
`nn.ParameterList([...])` for parameters.

The fix is unsafe: the layers are trained and saved then, so that checkpoints that were saved before lack their keys.

## When to ignore it

Where modules are meant to stay outside: a teacher or a frozen feature extractor in a list hides it on purpose. The rule
is silent where something takes care of the modules in the list, and about layers without parameters.

Holds for all supported versions of torch; tried with torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Replace
from torchlint.edits.renaming import from_root
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.layers.module_containers import (
    Container,
    attribute_uses,
    container,
    is_cared_for,
    is_filled_later,
    is_handed_on,
    is_module_class,
    is_parameter,
    is_trained,
    may_be_container,
    suits_module_list,
)
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call

REGISTERING = ("add_module", "register_module", "register_parameter", "setattr", "_modules", "__setattr__")
ON_PURPOSE = re.compile(r"teacher|ema|frozen|freeze|hidden|ref|pretrained|^_{2}", re.IGNORECASE)

rule = Rule(
    code="TL407",
    name="modules-in-plain-list",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="layers in a Python list or dictionary, which are neither moved nor trained",
    triggers=Triggers.all_of(("torch", "lightning", "pytorch_lightning"), "nn"),
    examples=(
        Example(
            bad="""
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(4)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
            good="""
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html",
    ),
    documentation=__doc__,
    silences={
        "registered": "The modules are registered in another way: by `add_module`, `setattr`, or another container.",
        "cared-for": "Something goes through the list and moves, trains, saves or freezes what is in it.",
        "handed-on": "The list goes to a function or variable, which may register it.",
        "without-parameters": "The modules hold no parameters, or nothing says so: there is nothing to train.",
        "on-purpose": "The name says that the modules are to stay outside, or the list hides a single one.",
        "not-a-module": "The class is no module, or nothing says that it is one.",
        "test": "The code belongs to a test.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Assign)
def check(assign: cst.Assign, model: Model) -> Iterator[Finding]:
    """Report a list or dictionary of modules that becomes an attribute of a module."""
    target = assign.targets[0].target
    if len(assign.targets) != 1 or not isinstance(target, cst.Attribute) or not may_be_container(assign.value):
        return
    owner = model.definitions.receiver(target.value) if isinstance(target.value, cst.Name) else None
    if owner is None or rule.silent("not-a-module", not is_module_class(owner, model)):
        return
    kept = container(assign, model)
    if kept is None or rule.silent("without-parameters", not any(is_trained(e, model) for e in kept.elements)):
        return
    name = target.attr.value
    is_single = isinstance(kept.display, (cst.List, cst.Tuple)) and len(kept.elements) == 1 == len(
        kept.display.elements
    )
    if rule.silent("on-purpose", bool(ON_PURPOSE.search(name)) or is_single):
        return
    if rule.silent("registered", _registers(owner, model)) or rule.silent("test", model.in_test(assign)):
        return
    uses = attribute_uses(target, owner, model)
    if rule.silent("cared-for", any(is_cared_for(use, model) for use in uses)):
        return
    if rule.silent("handed-on", is_handed_on(assign, uses, model)):
        return
    what = "Parameter" if all(is_parameter(e, model) for e in kept.elements) else "Module"
    home = f"{what}Dict" if kept.is_mapping else f"{what}List"
    yield Finding(
        assign,
        f"`{model.code(target)}` is a Python {'dictionary' if kept.is_mapping else 'list'}: `parameters()`, `to()` and "
        f"`state_dict()` of `{owner.name.value}` do not see what is in it, so that it is neither trained nor "
        f"moved. Keep it in an `nn.{home}`.",
        _fix(assign, target, kept, uses, model),
    )


def _registers(owner: cst.ClassDef, model: Model) -> bool:
    """Whether a class registers modules by hand."""
    parts = (part for part in model.descendants(owner.body) if isinstance(part, (cst.Name, cst.Attribute)))
    return any(identifier(part) in REGISTERING for part in parts)


def _fix(
    assign: cst.Assign, target: cst.Attribute, kept: Container, uses: list[cst.Attribute], model: Model
) -> Fix | None:
    function = model.enclosing_function(assign)
    if kept.is_mapping or isinstance(assign.value, cst.Tuple) or function is None or function.name.value != "__init__":
        return None
    if not all(_is_module(element, model) for element in kept.elements) or not _runs_after_init(
        assign, function, model
    ):
        return None
    if not all(suits_module_list(use, model) for use in uses):
        return None
    if isinstance(assign.value, cst.Name) and is_filled_later(assign.value, model):
        return None
    made = [element.func for element in kept.elements if isinstance(element, cst.Call)]
    near = [reference for reference in made if isinstance(reference, cst.Attribute)]
    name = from_root(near[0] if near else target, "torch.nn.ModuleList", model)
    if name is None or "\n" in model.code(assign.value):  # lines keep their indentation only where nobody moves them
        return None
    is_empty = isinstance(assign.value, cst.List) and not assign.value.elements
    return Fix(
        "Keep the modules in an `nn.ModuleList`",
        (Replace(assign.value, f"{name.code}({'' if is_empty else model.code(assign.value)})"), *name.imports),
        Safety.UNSAFE,
        "The modules are trained, moved and saved with the others then; checkpoints saved before lack their keys.",
        Evidence.INFERRED,
    )


def _is_module(element: cst.BaseExpression, model: Model) -> bool:
    value = model.value(element)
    return value.kind is Kind.MODULE and value.evidence >= Evidence.INFERRED


def _runs_after_init(assign: cst.Assign, function: cst.FunctionDef, model: Model) -> bool:
    """Whether the `__init__` of the base class ran before."""
    calls = (part for part in model.descendants(function.body) if method_call(part, "__init__") is not None)
    return any(model.order(call) < model.order(assign) for call in calls)
