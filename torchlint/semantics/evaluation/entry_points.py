"""Methods by which a model is run, besides calling it."""

from __future__ import annotations

import re
from typing import TypeGuard

import libcst as cst

from torchlint.semantics.autograd.frozen import ENTRY_POINTS
from torchlint.semantics.binding.arguments import parameter_for
from torchlint.semantics.evaluate import hints
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.type_hints import of_parameter
from torchlint.semantics.values import Kind, Origin, Value
from torchlint.syntax.calls import identifier, literal, method_call

_CONTAINERS = ("Sequential", "ModuleList", "DataParallel", "DistributedDataParallel", "Module")
_LAYERS = ("Transformer", "Linear", "Bilinear", "Conv", "LSTM", "GRU", "RNN", "Embedding", "MultiheadAttention")
"""How the names of those layers of torch begin that compute with parameters; norms hold a few."""
_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "Parameter")
_WITHOUT = ("torch.", "torchaudio.transforms.", "torchvision.transforms.", "numpy.", "math.", "builtins.")
"""Where everything comes from that gives an object no parameters, but for the layers of torch."""
_TRANSFORMS = ("torchaudio.transforms.", "torchvision.transforms.", "kornia.augmentation.", "kornia.filters.")
_PARTS = re.compile(r"^forward_\w+$|_forward$|^(decode_|decoder_)?step$")
"""What methods are called that run a part of a model, or one step of it; `decode_boxes` may only look at its output."""
Called = cst.Name | cst.Attribute | cst.Subscript
"""What a model may be: a variable, an attribute, an item of a dictionary."""

TEXTS = re.compile(
    r"(^|_)(labels|vocab|vocabulary|tok|tokenizer|bpe|alphabet|charset|itos|stoi|id2\w+|idx2\w+|index2\w+|dictionary)$"
)
"""What things are called that look words up."""
_PRODUCTS = frozenset("mm spmm matmul bmm einsum linear addmm baddbmm".split())
_DEPTH = 3
"""Through how many classes of the file the parts of a module are looked for."""


def may_be_model(called: cst.BaseExpression) -> TypeGuard[Called]:
    """Return whether what is called is written as models are: ``net``, ``self.net``, ``self.nets["net"]``."""
    if not isinstance(called, cst.Subscript):
        return isinstance(called, (cst.Name, cst.Attribute))
    index = called.slice[0].slice if len(called.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(literal(index.value), str)


def used_as(expression: cst.BaseExpression, evaluator: Evaluator) -> Value:
    """Return the value of what is called, or of whose methods are; by its name where the file only sets it to None.

    Of an argument of which nothing else is known, what the function of the file that takes it is annotated with.
    """
    value = evaluator.value(expression)
    if value.kind is Kind.UNKNOWN and isinstance(argument := evaluator.tree.parent(expression), cst.Arg):
        call = evaluator.tree.parent(argument)
        made = evaluator.definitions.definition(call.func) if isinstance(call, cst.Call) else None
        if isinstance(call, cst.Call) and isinstance(made, cst.FunctionDef):
            taken = parameter_for(made, argument, call, evaluator.definitions)
            return of_parameter(taken, evaluator) if taken is not None else value
    return hints.named(identifier(expression)) if value.kind is Kind.NONE else value


def run_by_method(called: Called, evaluator: Evaluator) -> Value | None:
    """Return the module that a method runs which is called: by its name, or since it calls layers of its object."""
    if not isinstance(called, cst.Attribute):
        return None
    owner = used_as(called.value, evaluator)
    if called.attr.value in ENTRY_POINTS:
        return owner
    if owner.kind is not Kind.MODULE:
        return None
    class_def = owner.definition or _only_module_with(called.attr.value, evaluator)
    if class_def is None and _PARTS.search(called.attr.value):
        return owner
    method = evaluator.definitions.method(class_def, called.attr.value) if isinstance(class_def, cst.ClassDef) else None
    if method is None or not _runs_layers(method, evaluator):
        return None
    return owner._replace(definition=class_def)


def method_behind(called: Called, module: Value, evaluator: Evaluator) -> cst.FunctionDef | None:
    """Return the function of the file that runs when a module, or a method of it, is called; None if unknown."""
    if not isinstance(module.definition, cst.ClassDef):
        return None
    is_method = isinstance(called, cst.Attribute) and evaluator.value(called).kind is not Kind.MODULE
    name = called.attr.value if isinstance(called, cst.Attribute) and is_method else "forward"
    return evaluator.definitions.method(module.definition, name)


def belongs_to_module(function: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Return whether a function is a method of a module."""
    owner = evaluator.definitions.owner(function)
    return owner is not None and evaluator.definitions.class_kind(owner) is Kind.MODULE


def _only_module_with(name: str, evaluator: Evaluator) -> cst.ClassDef | None:
    """The module of the file that defines a method of this name, if there is just one."""
    methods = (function for function in evaluator.tree.nodes(cst.FunctionDef) if function.name.value == name)
    owners = [owner for function in methods if (owner := evaluator.definitions.owner(function)) is not None]
    modules = [owner for owner in owners if evaluator.definitions.class_kind(owner) is Kind.MODULE]
    return modules[0] if len(modules) == 1 else None


def _runs_layers(method: cst.FunctionDef, evaluator: Evaluator) -> bool:
    """Whether a method runs layers of its object, or computes with its weights what other methods of it go on with."""
    calls = evaluator.tree.below(method.body, cst.Call)
    if any(_runs(call, evaluator) for call in calls):
        return True
    operations = evaluator.tree.below(method.body, cst.BinaryOperation)
    products: list[cst.CSTNode] = [call for call in calls if identifier(call.func) in _PRODUCTS]
    products += [each for each in operations if isinstance(each.operator, cst.MatrixMultiply)]
    if not any(isinstance(evaluator.tree.enclosing(each, cst.For, cst.FunctionDef), cst.For) for each in products):
        return False  # one product folds or measures weights; layer by layer is a pass
    owner = evaluator.definitions.owner(method)
    is_part = any(owner is not None and evaluator.tree.within(call, owner) for call in evaluator.callers(method))
    attributes = evaluator.tree.below(method.body, cst.Attribute) if is_part else ()
    return any(evaluator.value(attribute).origin is Origin.PARAMETER for attribute in attributes)


def _runs(call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a call in a method runs a module that its object holds: ``self.encoder(x)``, or the object itself."""
    held = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    is_own = isinstance(held, cst.Name) and evaluator.definitions.receiver(held) is not None
    return is_own and evaluator.value(call.func).kind is Kind.MODULE


def may_have_parameters(module: Value) -> bool:
    """Return whether a module can have parameters: all but the layers of torch that are known to have none."""
    library, _, layer = (module.name or "").rpartition(".")
    return not library.startswith("torch.nn") or layer.startswith((*_CONTAINERS, *_LAYERS))


def has_layers(owner: cst.ClassDef, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether a class makes layers with parameters, also by classes of the file, or asks for parameters."""
    if any(node.attr.value == "parameters" for node in evaluator.tree.below(owner, cst.Attribute)):
        return True
    for call in evaluator.tree.below(owner, cst.Call):
        library, _, layer = (evaluator.names.qualified(call.func) or "").rpartition(".")
        if library.startswith("torch.nn") and layer.startswith((*_LAYERS, *_NORMS)):
            return True
        made = evaluator.definitions.definition(call.func)
        is_other = isinstance(made, cst.ClassDef) and made is not owner and depth < _DEPTH
        if is_other and isinstance(made, cst.ClassDef) and has_layers(made, evaluator, depth + 1):
            return True
    return False


def lacks_parameters(module: Value, evaluator: Evaluator) -> bool:
    """Return whether a module of the file visibly has no parameters: it filters, looks up or measures."""
    owner = module.definition
    if not isinstance(owner, cst.ClassDef) or set(evaluator.definitions.ancestry(owner)) != {"torch.nn.Module"}:
        return False
    forward = evaluator.definitions.method(owner, "forward")
    if forward is None or not evaluator.tree.below(forward.body, cst.Call):
        return False
    called = [call.func for call in evaluator.tree.below(owner, cst.Call)]
    names = [evaluator.names.qualified(function) for function in called]
    pairs = [(n, f) for n, f in zip(names, called, strict=True) if n is not None or isinstance(f, cst.Name)]
    made = [n for n, f in pairs if n is not None or not _only_computes(evaluator.definitions.definition(f), evaluator)]
    known = all(name is not None and name.startswith(_WITHOUT) for name in made)
    if not known or evaluator.definitions.bases(owner) or has_layers(owner, evaluator):
        return False
    return not any(_may_be_network(function, owner, evaluator) for function in called)


def _only_computes(made: cst.CSTNode | None, evaluator: Evaluator, depth: int = 0) -> bool:
    """Whether something is a function of the file that makes no layers, but only computes with functions of torch."""
    if not isinstance(made, cst.FunctionDef) or depth > _DEPTH:
        return False
    for call in evaluator.tree.below(made.body, cst.Call):
        name = evaluator.names.qualified(call.func)
        library, _, layer = (name or "").rpartition(".")
        makes = layer[:1].isupper() and library != "builtins"
        if makes or (name is not None and not name.startswith(_WITHOUT)):
            return False
        is_other = name is None and isinstance(call.func, cst.Name)
        if is_other and not _only_computes(evaluator.definitions.definition(call.func), evaluator, depth + 1):
            return False
    return True


def _may_be_network(called: cst.BaseExpression, owner: cst.ClassDef, evaluator: Evaluator) -> bool:
    """Whether a module runs what it was given, or has made of who knows what: ``self.net(x)``."""
    held = called
    while isinstance(held, cst.Attribute) and not isinstance(held.value, cst.Name):
        held = held.value
    if not isinstance(held, cst.Attribute) or not isinstance(held.value, cst.Name):
        return False
    if evaluator.definitions.receiver(held.value) is not owner:
        return False
    bound = evaluator.definitions.attribute(owner, held.attr.value)
    if held is not called and evaluator.value(held).kind is not Kind.MODULE:
        return False  # a method of a tensor
    return not all(binding.value is not None and _is_filter(binding.value, evaluator) for binding in bound)


def works_on_texts(model: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a variable holds what is made of labels or a tokenizer: it searches, or looks words up."""
    if not isinstance(model, cst.Name) or not model.value.endswith(("decoder", "encoder")):
        return False
    made = (value for value in evaluator.held_by(model) if isinstance(value, cst.Call))
    calls = (call for call in made if evaluator.definitions.definition(call.func) is None)
    given = (argument.value for call in calls for argument in call.args)
    return any(TEXTS.search(identifier(value)) for value in given)


def only_filters(model: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a variable holds a sequence of transforms without parameters: ``nn.Sequential(Resample(...))``."""
    bindings = evaluator.flow.definitions(model) if isinstance(model, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    while (method := method_call(made, "to", "cuda", "eval")) is not None:
        made = method.value
    if not isinstance(made, cst.Call) or evaluator.names.qualified(made.func) != "torch.nn.Sequential" or not made.args:
        return False
    return all(_is_filter(argument.value, evaluator) for argument in made.args)


def _is_filter(made: cst.BaseExpression, evaluator: Evaluator) -> bool:
    name = evaluator.names.qualified(made.func) if isinstance(made, cst.Call) else None
    library, _, layer = (name or "").rpartition(".")
    if library.startswith("torch.nn"):
        return not layer.startswith((*_CONTAINERS, *_LAYERS, *_NORMS))
    if isinstance(made, cst.Lambda):
        return True
    return name is not None and name.startswith(_TRANSFORMS)
