"""A module's `forward` is called instead of the module.

`model.forward(x)`, `self.encoder.forward(x)`: a call of `forward` on a module from outside its own class.

## Why it costs

`model(x)` runs `forward` and everything that hangs on the module: hooks (of profilers, pruning, weight and spectral
norm, feature extraction, FSDP and quantization), the graph of a module that was compiled in place, and tracing.
`model.forward(x)` runs none of it, without a word (read in `torch/nn/modules/module.py` of torch 2.13): FSDP has not
gathered the parameters then, and `module.compile()` has no effect.

## What to write instead

`model(x)`.

The fix is unsafe: what hangs on the module begins to run, which is the point.

## When to ignore it

Where the hooks must not run: inside a `__call__` of one's own, or to compare with and without them.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.operations import Unwrap
from torchlint.finding import Finding, Fix, Safety
from torchlint.rule import Default, Example, Family, Rule, Triggers
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.compilers.torchscript import is_handed_on, may_become_script
from torchlint.semantics.evidence import Evidence
from torchlint.semantics.model import Model
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, method_call

BASES = ("torch.nn.", "lightning.pytorch.LightningModule", "timm.models.", "torchvision.models.")
CALL = "__call__"
INTERFACE = "torch.jit.interface"

rule = Rule(
    code="TL410",
    name="forward-called-directly",
    family=Family.MODEL,
    since="0.1.0",
    default=Default.ON,
    summary="`model.forward(x)` instead of `model(x)`",
    triggers=Triggers.all_of("forward"),
    examples=(
        Example(
            bad="from torch import nn\n\nmodel = nn.Linear(4, 2)\ny = model.forward(x)\n",
            good="from torch import nn\n\nmodel = nn.Linear(4, 2)\ny = model(x)\n",
        ),
    ),
    references=("https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward",),
    documentation=__doc__,
    silences={
        "own": "The object calls its own forward pass, or that of its base class.",
        "unbound": "The function is called with the object as an argument: that is how a base class is asked.",
        "interface": "The module is known by an interface of TorchScript, of which only the methods can be called.",
        "sliced": "The module comes out of a slice of a list (`for layer in self.layers[1:]`), a tuple, a choice or an "
        "unpacking, in a module that another file may compile: TorchScript cannot call it, only its methods.",
        "call-protocol": "The code is a `__call__` itself, or the module's class has one of its own, or, where that "
        "is unknown, the class around it.",
        "not-a-module": "Nothing says for certain that the object is a module of torch: it can be a function of "
        "autograd, a network in NumPy, or a wrapper around several networks.",
        "hook": "The code is a hook of a module: calling the module would run it again.",
        "compared": "The same function calls the object as well, or a library means something else by calls.",
    },
    fixes=(Safety.UNSAFE,),
    about_speed=False,
)


@rule.check(cst.Call, called=("forward",))
def check(call: cst.Call, model: Model) -> Iterator[Finding]:
    """Report a call of `forward` on a module."""
    function = method_call(call, "forward")
    if function is None:
        return
    receiver = function.value
    value = model.value(receiver)
    if rule.silent("own", _is_own(receiver, model)):
        return
    is_guessed = value.evidence is Evidence.NAMED and not model.module_calls.is_kept(receiver)
    if value.kind is not Kind.MODULE or is_guessed:
        return
    definition = value.definition if isinstance(value.definition, cst.ClassDef) else None
    is_torch = _is_torch(definition, model) if definition is not None else _is_borne_out(call, receiver, model)
    if rule.silent("not-a-module", not is_torch):
        return
    if rule.silent("hook", model.module_calls.is_in_hook(call)):
        return
    if rule.silent("compared", model.module_calls.differs(call, receiver)):
        return
    if rule.silent("interface", _is_interface(receiver, definition, model)):
        return
    if rule.silent("sliced", is_handed_on(receiver, model) and may_become_script(call, model)):
        return
    if rule.silent("call-protocol", _has_own_call(definition, call, model)):
        return
    yield Finding(
        call,
        f"`{model.code(function)}(...)` passes over the hooks of the module, and over what they do: profilers, FSDP, "
        "spectral norm, compilation in place. Call the module.",
        Fix(
            "Call the module",
            (Unwrap(function, receiver),),
            Safety.UNSAFE,
            "The hooks of the module run then.",
            value.evidence,
        ),
    )


def _is_own(receiver: cst.BaseExpression, model: Model) -> bool:
    """Whether the receiver is the object of the method around, or stands for its base class."""
    if isinstance(receiver, cst.Call):
        return model.qualified_name(receiver.func) == "builtins.super"
    return isinstance(receiver, cst.Name) and model.definitions.receiver(receiver) is not None


def _is_borne_out(call: cst.Call, receiver: cst.BaseExpression, model: Model) -> bool:
    """Whether an object whose class is not in the file is a module that is given something."""
    value, without_graph = model.value(receiver), model.evaluator.gradients.disabled(call)
    return bool(call.args) and (without_graph or model.module_calls.is_of_torch(receiver, value))


def _is_torch(definition: cst.ClassDef, model: Model) -> bool:
    return any(name.startswith(BASES) for name in model.ancestry(definition))


def _is_interface(receiver: cst.BaseExpression, definition: cst.ClassDef | None, model: Model) -> bool:
    """Whether the class of the receiver, or its annotation, is an interface of TorchScript."""
    annotated = (node for node in model.nodes(cst.AnnAssign) if identifier(node.target) == identifier(receiver))
    named = (model.definition(node.annotation.annotation) for node in annotated)
    classes = (found for found in (definition, *named) if isinstance(found, cst.ClassDef))
    decorators = (decorator for class_def in classes for decorator in class_def.decorators)
    return any(model.qualified_name(decorator.decorator) == INTERFACE for decorator in decorators)


def _has_own_call(definition: cst.ClassDef | None, call: cst.Call, model: Model) -> bool:
    if definition is not None and model.definitions.method(definition, CALL) is not None:
        return True
    if any(identifier(target.target) == CALL for target in model.nodes(cst.AssignTarget)):
        return True
    is_open = definition is None and _is_one_of_several(call, model)
    if is_open and any(_makes_own_call(each, model) for each in model.nodes(cst.Call)):
        return True
    around = model.enclosing_function(call)
    owner = model.definitions.owner(around) if around is not None else None
    is_alike = definition is None and owner is not None and model.definitions.method(owner, CALL) is not None
    return is_alike or (around is not None and around.name.value == CALL)


def _makes_own_call(call: cst.Call, model: Model) -> bool:
    """Whether a module of such a class is made and put among others at once: in a list, or by `append`."""
    made = model.definition(call.func)
    is_own = isinstance(made, cst.ClassDef) and CALL in model.definitions.methods(made)
    return is_own and isinstance(model.parent(call), (cst.Element, cst.DictElement, cst.BaseComp, cst.Arg))


def _is_one_of_several(call: cst.Call, model: Model) -> bool:
    """Whether a loop or an index takes the module out of a list, which may hold objects of several classes."""
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    bindings = model.evaluator.flow.definitions(receiver) if isinstance(receiver, cst.Name) else []
    return isinstance(receiver, cst.Subscript) or any(b.kind is BindingKind.ITERATION for b in bindings)
