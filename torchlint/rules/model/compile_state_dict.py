"""The state dict of a compiled model is saved, with keys that only a compiled model has.

`compiled = torch.compile(model)`, and later `torch.save(compiled.state_dict(), path)`, also inside of a dictionary, or
with `safetensors.torch.save_file`.

## Why it costs

`torch.compile(model)` returns a module that holds the model under the name `_orig_mod`, so every key of its state dict
begins with `_orig_mod.`. A model that is not compiled, such as that of the script that evaluates or serves it, cannot
load the file: every key is missing and every key is unexpected, or with `strict=False` nothing is loaded, without a
word (torch 2.13).

## What to write instead

The state dict of the model that was compiled, which has the same parameters: `torch.save(model.state_dict(), path)`. Or
`model.compile()`, which compiles in place and renames nothing.

There is no fix: which of these, and who reads the files that exist, is a decision.

## When to ignore it

Where only a compiled model ever loads the file. The rule is silent where the code around deals with the prefix.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Finding
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.model import Model
from torchlint.syntax.calls import identifier, method_call

COMPILE = "torch.compile"
SAVERS = frozenset(("torch.save", "safetensors.torch.save_file", "safetensors.torch.save"))
PREFIX = "_orig_mod"

rule = Rule(
    code="TL418",
    name="compile-state-dict",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.PREVIEW,
    summary="the state dict of what `torch.compile` returned is saved",
    triggers=Triggers.all_of("compile", "state_dict", ("save", "save_file")),
    examples=(
        Example(
            bad="""
import torch

def train(model, path):
    compiled = torch.compile(model)
    torch.save(compiled.state_dict(), path)
"""
        ),
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile",
    ),
    documentation=__doc__,
    silences={
        "prefix-known": "The code around speaks of `_orig_mod`, or a function that it calls: the prefix is stripped.",
        "not-saved": "The state dict is written to no file: it is compared, averaged or loaded at once.",
        "not-compiled": "The state dict is that of the model itself, or of one that was compiled in place.",
        "switched-off": "`disable=` decides whether anything is compiled: then the model comes back as it is.",
    },
    about_speed=False,
)


@rule.check(cst.Call, called=("state_dict",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report the state dict of a compiled model that goes into a file."""
    function = method_call(call, "state_dict")
    if function is None or not any(_is_compiled(value, model) for value in _values(function.value, model)):
        return
    if rule.silent("not-saved", not _is_saved(call, model)) or rule.silent("prefix-known", _knows_prefix(call, model)):
        return
    yield Finding(
        call,
        f"{model.shown(function.value, 'The module')} comes from `torch.compile`: all keys of its state dict begin "
        "with `_orig_mod.`, and a model that is not compiled cannot load them. Save that of the model itself, or "
        "compile it in place with `model.compile()`.",
    )


def _values(module: cst.BaseExpression, model: Model) -> list[cst.BaseExpression | None]:
    """Return what is assigned to a name or to an attribute of the object."""
    if isinstance(module, cst.Name):
        return [None if binding.path else binding.value for binding in model.reaching(module)]
    if isinstance(module, cst.Attribute) and isinstance(module.value, cst.Name):
        owner = model.definitions.receiver(module.value)
        found = model.definitions.attribute(owner, module.attr.value) if owner is not None else []
        return [None if binding.path else binding.value for binding in found]
    return []


def _is_compiled(value: cst.BaseExpression | None, model: Model) -> bool:
    if not isinstance(value, cst.Call) or model.callee(value) != COMPILE:
        return False
    return not rule.silent("switched-off", model.arguments(value, ("model",)).get("disable") is not None)


def _is_saved(call: cst.Call, model: Model) -> bool:
    """Whether a value goes into a call that writes a file: directly, in a dictionary, or by way of a name."""
    for ancestor in model.ancestors(call):
        if isinstance(ancestor, cst.Call):
            return model.qualified_name(ancestor.func) in SAVERS
        if isinstance(ancestor, cst.Assign):
            names = [target.target for target in ancestor.targets if isinstance(target.target, cst.Name)]
            return any(_is_passed_on(name, model) for name in names)
        if not isinstance(ancestor, (cst.Dict, cst.DictElement, cst.Arg)):
            return False
    return False


def _is_passed_on(name: cst.Name, model: Model) -> bool:
    """Whether a variable is the argument of a call that writes a file."""
    bindings = [binding for binding in model.bindings(name) if binding.node is name]
    uses = (use for binding in bindings for use in model.uses(binding))
    around = (model.enclosing(use, cst.Call) for use in uses)
    return any(found is not None and model.qualified_name(found.func) in SAVERS for found in around)


def _knows_prefix(call: cst.Call, model: Model) -> bool:
    """Whether the outermost function or class around a call, or one that it calls, speaks of the prefix."""
    around = [node for node in model.ancestors(call) if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
    parts = list(model.descendants(around[-1] if around else model.tree.module))
    helpers = (model.definition(part.func) for part in parts if isinstance(part, cst.Call))
    parts += [part for helper in helpers if helper is not None for part in model.descendants(helper)]
    texts = (part.raw_value for part in parts if isinstance(part, cst.SimpleString))
    return any(PREFIX in text for text in texts) or any(identifier(part) == PREFIX for part in parts)
