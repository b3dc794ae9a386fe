"""A module's `__init__` never runs that of `nn.Module`.

A subclass of `torch.nn.Module`, of one of torch's layers, or of another module of the file, whose `__init__` sets
attributes, or does nothing beside a `forward` that does something, and calls neither `super().__init__()` nor the
`__init__` of a base class by name.

## Why it costs

`nn.Module.__init__` makes the dictionaries in which parameters, buffers, submodules and hooks are kept. Without them
the first `self.layer = nn.Linear(...)` raises `AttributeError: cannot assign module before Module.__init__() call`, and
a module that has only plain attributes raises `has no attribute '_backward_hooks'` when it is first called: the program
stops where the class is first used, which can be hours into a run (torch 2.13).

## What to write instead

`super().__init__()` as the first line of `__init__`. There is no fix: what the base class wants to be given is a
decision.

## When to ignore it

Where something else initialises the module. The rule is silent where the class copies the state of another one, hands
itself to a function that may do it, or has a metaclass or decorator.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier
from torchlint.syntax.statements import is_placeholder, plain_statements

INIT = "__init__"
BASES = ("torch.nn.", "lightning.pytorch.LightningModule")

rule = Rule(
    code="TL411",
    name="missing-super-init",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="a module's `__init__` never runs that of `nn.Module`",
    triggers=Triggers.all_of(("torch", "lightning", "pytorch_lightning"), INIT),
    examples=(
        Example(
            bad="""
from torch import nn

class Net(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)
"""
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html",),
    documentation=__doc__,
    silences={
        "initialised": "An `__init__` is called in the class: by `super()`, or by the name of a base class.",
        "by-subclass": "A subclass in the file calls the `__init__` of a base class other than this one by name.",
        "state-copied": "The class writes into its `__dict__`, so it takes over the state of another module.",
        "handed-over": "The class hands itself to a function, or calls a method that another file defines.",
        "made-otherwise": "A metaclass, a decorator or a `__new__` of its own decides how objects are made.",
        "called-otherwise": "The class says itself what a call or an assignment to an attribute does.",
        "sets-nothing": "`__init__` sets no attribute, and no forward pass of its own says that it is not abstract.",
        "no-use": "The class has no forward pass and keeps no layer or parameter: nothing asks for what is missing.",
        "not-a-module": "The class is no module, or nothing says that it is one.",
    },
    about_speed=False,
)


@rule.check(cst.ClassDef)
def check(class_def: cst.ClassDef, model: Model) -> Iterator[Finding]:
    """Report the `__init__` of a module class that does not run that of its base."""
    if rule.silent("not-a-module", not any(name.startswith(BASES) for name in model.ancestry(class_def))):
        return
    methods = model.definitions.methods(class_def)
    init = methods.get(INIT)
    if init is None or rule.silent("initialised", _names_init(class_def, model)):
        return
    is_whole = _does_nothing(init) and "forward" in methods and not _does_nothing(methods["forward"], or_raises=True)
    if rule.silent("sets-nothing", not is_whole and not _sets_attributes(init, model)):
        return
    if rule.silent("state-copied", _copies(init, model)):
        return
    if rule.silent("made-otherwise", bool(class_def.keywords or class_def.decorators or "__new__" in methods)):
        return
    if rule.silent("called-otherwise", not methods.keys().isdisjoint(("__call__", "__setattr__"))):
        return
    if rule.silent("no-use", model.definitions.method(class_def, "forward") is None and not _keeps_layers(init, model)):
        return
    if rule.silent("handed-over", _hands_over(class_def, init, model)):
        return
    if rule.silent("by-subclass", _is_initialised_below(class_def, model)):
        return
    yield Finding(
        init.name,
        f"`{class_def.name.value}.__init__` never runs `nn.Module.__init__`: assigning the first layer or parameter "
        "raises an AttributeError, or calling the module does. Begin it with `super().__init__()`.",
        owner=init,
    )


def _receiver(function: cst.FunctionDef) -> str:
    parameters = (*function.params.posonly_params, *function.params.params)
    return parameters[0].name.value if parameters else ""


def _sets_attributes(init: cst.FunctionDef, model: Model) -> bool:
    """Whether a method assigns to an attribute of its object, and does not only raise."""
    own = _receiver(init)
    targets = (
        part.target for part in model.descendants(init.body) if isinstance(part, (cst.AssignTarget, cst.AnnAssign))
    )
    parts = (part for target in targets for part in model.descendants(target))
    return any(isinstance(part, cst.Attribute) and identifier(part.value) == own for part in parts)


def _does_nothing(function: cst.FunctionDef, *, or_raises: bool = False) -> bool:
    """Whether a function has no statement but `pass`, its documentation or dots, or one that raises where asked."""
    statements = plain_statements(function)
    return statements is not None and all(
        is_placeholder(statement) or (or_raises and isinstance(statement, cst.Raise)) for statement in statements
    )


def _keeps_layers(init: cst.FunctionDef, model: Model) -> bool:
    """Whether a method assigns modules or parameters."""
    values = (part.value for part in model.descendants(init.body) if isinstance(part, (cst.Assign, cst.AnnAssign)))
    parts = (part for value in values if value is not None for part in model.descendants(value))
    calls = [part for part in parts if isinstance(part, cst.Call)]
    is_torch = any((model.qualified_name(call.func) or "").startswith("torch.nn.") for call in calls)
    return is_torch or any(model.value(call).kind is Kind.MODULE for call in calls)


def _names_init(class_def: cst.ClassDef, model: Model) -> bool:
    """Whether the class speaks of the `__init__` of anything."""
    named = (attribute for attribute in model.nodes(cst.Attribute) if attribute.attr.value == INIT)
    return any(model.within(attribute, class_def.body) for attribute in named)


def _copies(init: cst.FunctionDef, model: Model) -> bool:
    attributes = (part.attr.value for part in model.descendants(init.body) if isinstance(part, cst.Attribute))
    return not {"__dict__", "__setstate__"}.isdisjoint(attributes)


def _hands_over(class_def: cst.ClassDef, init: cst.FunctionDef, model: Model) -> bool:
    """Whether a function that gets the object, or a method from elsewhere, may initialise it."""
    own = _receiver(init)
    calls = [part for part in model.descendants(init.body) if isinstance(part, cst.Call)]
    given = (argument.value for call in calls for argument in call.args)
    if any(isinstance(value, cst.Name) and value.value == own for value in given):
        return True
    called = (call.func for call in calls if isinstance(call.func, cst.Attribute))
    methods = {f.attr.value for f in called if isinstance(f.value, cst.Name) and f.value.value == own}
    elsewhere = any(model.definitions.method(class_def, name) is None for name in methods)
    return elsewhere and _has_foreign_base(class_def, model)


def _has_foreign_base(class_def: cst.ClassDef, model: Model) -> bool:
    """Whether a base class is neither torch's nor one of the file."""
    foreign = (base.value for base in class_def.bases if model.definition(base.value) is None)
    return not all((model.qualified_name(base) or "").startswith(BASES) for base in foreign)


def _is_initialised_below(class_def: cst.ClassDef, model: Model) -> bool:
    """Whether a subclass in the file calls the `__init__` of another class by its name."""
    for other in model.nodes(cst.ClassDef):
        if any(base is class_def for base in model.definitions.bases(other)):
            named = (
                part.value
                for part in model.descendants(other.body)
                if isinstance(part, cst.Attribute) and part.attr.value == INIT and not isinstance(part.value, cst.Call)
            )
            if any(identifier(owner) != class_def.name.value for owner in named):
                return True
    return False
