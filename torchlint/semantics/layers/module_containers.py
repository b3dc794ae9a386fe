"""Python lists and dictionaries that an object keeps in an attribute, and what goes into them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.canonical import is_same

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_BASES = ("torch.nn.", "lightning.pytorch.LightningModule")
_PARAMETER = "torch.nn.Parameter"
_HOLDING = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList"))
_WITH_PARAMETERS = re.compile(
    r"^torch\.nn\.(Parameter|\w*Linear|Lazy\w+|\w*Conv\w*|\w*Norm\w*|RNN\w*|LSTM\w*|GRU\w*|Embedding\w*|PReLU|"
    r"MultiheadAttention|Transformer\w*)$"
)
_LOOKING = frozenset(("len", "enumerate", "zip", "range", "reversed", "print", "isinstance"))
_ITERATING = ("len", "enumerate", "zip", "reversed")
_OF_LISTS = ("append", "extend", "insert")
_CARING = re.compile(
    "^(parameters|named_parameters|to|cuda|cpu|half|train|eval|state_dict|load_state_dict|requires_grad_?|apply|modules|"
    "reset_parameters|data)$"
)
_HANDING_ON = (cst.Return, cst.Assign, cst.Element, cst.Yield, cst.BinaryOperation, cst.StarredElement)
_MAY_SHOW: frozenset[type] = frozenset(
    (cst.Name, cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp, cst.BinaryOperation, cst.Call)
)
_DEPTH = 3
_ADDERS = frozenset((*_OF_LISTS, "setdefault"))
_ADDS = {"append": 0, "insert": 1, "setdefault": 1}


class Container(NamedTuple):
    """A list, tuple or dictionary of this file."""

    display: cst.BaseExpression
    """The expression that makes it."""

    elements: tuple[cst.BaseExpression, ...]
    """All that visibly goes in."""

    is_mapping: bool


def may_be_container(value: cst.BaseExpression) -> bool:
    """Return whether an expression is a display, or a variable that may hold one: asked before all else."""
    return value.__class__ in _MAY_SHOW and (isinstance(value, cst.Name) or _displayed(value) is not None)


def container(assign: cst.Assign, model: Model) -> Container | None:
    """Return the container that an assignment to an attribute keeps, with what the class adds to it later."""
    target = assign.targets[0].target
    places: list[cst.BaseExpression] = [target]
    display: cst.BaseExpression | None = assign.value
    if isinstance(display, cst.Name):
        places.append(display)
        bindings = [b for b in model.bindings(display) if b.kind is not BindingKind.AUGMENTED]
        single = bindings[0] if len(bindings) == 1 else None
        display = single.value if single is not None and single.kind is BindingKind.ASSIGNMENT else None
    displayed = _displayed(display)
    if displayed is None or display is None:
        return None
    around = model.enclosing(assign, cst.ClassDef)
    added = [e for place in places for e in _added(place, around, model)] if around is not None else []
    is_mapping = (
        isinstance(display, (cst.Dict, cst.DictComp)) or identifier(getattr(display, "func", display)) == "dict"
    )
    return Container(display, (*displayed, *added), is_mapping)


def _displayed(node: cst.CSTNode | None) -> list[cst.BaseExpression] | None:
    """Return what a display or comprehension shows, None for any other expression."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return [e.value for e in node.elements if isinstance(e, cst.Element)]
    if isinstance(node, cst.Dict):
        return [e.value for e in node.elements if isinstance(e, cst.DictElement)]
    if isinstance(node, (cst.ListComp, cst.DictComp)):
        return [node.elt if isinstance(node, cst.ListComp) else node.value]
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return _displayed(node.left)
    if isinstance(node, cst.Call) and identifier(node.func) in ("list", "dict") and not node.args:
        return []
    return None


def _added(place: cst.BaseExpression, around: cst.ClassDef, model: Model) -> Iterator[cst.BaseExpression]:
    """Yield what is put into a place by its methods, by subscripts and by ``+=``."""
    for call in model.calls_by_name.named(_ADDERS):
        method = method_call(call, *_ADDERS)
        if method is not None and is_same(method.value, place) and model.within(call, around) and call.args:
            given = call.args[min(_ADDS.get(method.attr.value, 0), len(call.args) - 1)].value
            yield from [given] if method.attr.value in _ADDS else _displayed(given) or []
    for augmented in model.tree.below(around, cst.AugAssign):
        if is_same(augmented.target, place):
            yield from _displayed(augmented.value) or []
    for assign in model.tree.below(around, cst.Assign):
        stored = assign.targets[0].target
        if isinstance(stored, cst.Subscript) and is_same(stored.value, place):
            yield assign.value


def is_module_class(class_def: cst.ClassDef, model: Model) -> bool:
    """Return whether a class is certainly a module."""
    return any(name.startswith(_BASES) for name in model.ancestry(class_def))


def is_parameter(element: cst.BaseExpression, model: Model) -> bool:
    """Return whether an element is a new parameter."""
    return isinstance(element, cst.Call) and model.qualified_name(element.func) == _PARAMETER


def is_trained(element: cst.BaseExpression, model: Model, depth: int = _DEPTH) -> bool:
    """Return whether an element is a new parameter, or a new module that visibly holds some."""
    if isinstance(element, cst.Name):
        found = model.reaching(element)
        value = found[0].value if len(found) == 1 and not found[0].path else None
        return isinstance(value, cst.Call) and depth > 0 and is_trained(value, model, depth - 1)
    if not isinstance(element, cst.Call) or depth == 0:
        return False
    name = model.qualified_name(element.func) or ""
    if name in _HOLDING:
        parts = (part for argument in element.args for part in model.descendants(argument.value))
        return any(isinstance(part, cst.Call) and is_trained(part, model, depth - 1) for part in parts)
    if _WITH_PARAMETERS.match(name):
        return True
    made = model.definition(element.func)
    if not isinstance(made, cst.ClassDef) or not is_module_class(made, model):
        return False
    calls = (part for part in model.descendants(made.body) if isinstance(part, cst.Call))
    return any(_WITH_PARAMETERS.match(model.qualified_name(call.func) or "") for call in calls)


def is_handed_on(assign: cst.Assign, uses: Sequence[cst.Attribute], model: Model) -> bool:
    """Return whether a container goes anywhere but into loops, subscripts and its own methods."""
    if isinstance(assign.value, cst.Name):
        names = [n for b in model.bindings(assign.value) for n in model.uses(b) if n is not assign.value]
        if any(_is_given(name, model) for name in names):
            return True
    return any(_is_given(use, model) or isinstance(model.parent(use), cst.AssignTarget) for use in uses)


def _is_given(use: cst.BaseExpression, model: Model) -> bool:
    parent = model.parent(use)
    if isinstance(parent, _HANDING_ON):
        return True
    call = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and identifier(call.func) not in _LOOKING


def attribute_uses(target: cst.Attribute, owner: cst.ClassDef, model: Model) -> list[cst.Attribute]:
    """Return the other places that speak of an attribute, but for those of classes that have nothing to do with it."""
    found = []
    for use in model.nodes(cst.Attribute):
        if use.attr.value == target.attr.value and use is not target:
            other = model.definitions.receiver(use.value) if isinstance(use.value, cst.Name) else None
            if other is None or other is owner or owner in model.definitions.bases(other):
                found.append(use)
    return found


def is_cared_for(use: cst.Attribute, model: Model) -> bool:
    """Return whether a loop, comprehension or subscript over a container calls what moves or trains a module."""
    around = model.enclosing(use, cst.For, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)
    if around is not None and isinstance(around, cst.For) and not model.within(use, around.iter):
        around = None
    parts = model.descendants(around if around is not None else model.statement(use))
    return any(isinstance(part, cst.Attribute) and bool(_CARING.match(part.attr.value)) for part in parts)


def suits_module_list(use: cst.Attribute, model: Model) -> bool:
    """Return whether a list and a module list do the same at a use."""
    parent = model.parent(use)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in _OF_LISTS
    if isinstance(parent, (cst.For, cst.CompFor)):
        return True
    if isinstance(parent, cst.Subscript):
        return not isinstance(model.parent(parent), cst.Del)
    call = model.parent(parent) if isinstance(parent, cst.Arg) and not parent.star else None
    return isinstance(call, cst.Call) and identifier(call.func) in _ITERATING


def is_filled_later(name: cst.Name, model: Model) -> bool:
    """Return whether a variable is used again after a place, or may be, since that stands in a loop."""
    later = (use for b in model.bindings(name) for use in model.uses(b) if model.order(use) > model.order(name))
    return any(True for _ in later) or model.enclosing(name, cst.For, cst.While) is not None
