"""Datasets that a program changes elsewhere than in the loop over epochs, which workers that are kept would miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.assignments import pairs
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.canonical import is_same

_MAKER = "__init__"
_BY_NAME = ("setattr", "getattr")


def is_changed_elsewhere(held: Iterable[cst.BaseExpression], evaluator: Evaluator) -> bool:
    """Return whether a method of the object that holds a dataset stores to what it is made of, or a global is set."""
    for one in held:
        if isinstance(one, cst.Attribute) and any(_is_stored(part, evaluator) for part in _parts(one, evaluator)):
            return True
        if isinstance(one, (cst.Name, cst.Attribute)) and _is_stored_by_name(identifier(one), evaluator):
            return True
        if _reads_changed_global(one, evaluator) or _is_class_changed(one, evaluator):
            return True
    return False


def is_changed_by_loader(loaders: frozenset[str], held: frozenset[str], evaluator: Evaluator) -> bool:
    """Return whether the file changes what loaders of some names hold, or in a loop what has one of the names ``held``.

    ``loader.dataset.noise = 1``, ``setattr(loader.dataset, "noise", 1)``, ``for data in (a, b): data.set_epoch(3)``
    """
    tree = evaluator.tree
    for dataset in tree.attributes_named("dataset"):
        if identifier(dataset.value) in loaders and _is_changed(dataset, evaluator):
            return True
    told = (method.value for method in tree.attributes_named("set_epoch"))
    bound = (binding for each in told if isinstance(each, cst.Name) for binding in evaluator.flow.definitions(each))
    over = (b.value for b in bound if b.kind is BindingKind.ITERATION and b.value is not None)
    return any(name.value in held for each in over for name in tree.below(each, cst.Name))


def _is_changed(dataset: cst.Attribute, evaluator: Evaluator) -> bool:
    parent = evaluator.tree.parent(dataset)
    above = evaluator.tree.parent(parent) if parent is not None else None
    if isinstance(parent, cst.Attribute) and isinstance(above, cst.Arg):
        return parent.attr.value.startswith("set_")
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and identifier(above.func) in _BY_NAME:
        return len(above.args) > 1 and _may_set(above)
    return isinstance(parent, cst.Attribute) and isinstance(above, (cst.AssignTarget, cst.AugAssign))


def _may_set(call: cst.Call) -> bool:
    """Whether a call sets an attribute, or gets a method that sets one."""
    name = literal(call.args[1].value)
    return identifier(call.func) == "setattr" or (isinstance(name, str) and name.startswith("set_"))


def _parts(kept: cst.Attribute, evaluator: Evaluator) -> Iterator[cst.Attribute]:
    """An attribute of ``self``, and those that hold what it was made of: ``self.opt = opt; self.data = Data(opt)``."""
    yield kept
    owner = _owner(kept, evaluator)
    bindings = evaluator.definitions.attribute(owner, kept.attr.value) if owner is not None else []
    made = [binding.value for binding in bindings if isinstance(binding.value, cst.Call)]
    names = {name.value for call in made for argument in call.args for name in evaluator.tree.below(argument, cst.Name)}
    given = [argument.value for call in made for argument in call.args]
    yield from (each for each in given if isinstance(each, cst.Attribute) and _owner(each, evaluator) is owner)
    for statement in evaluator.tree.below(owner, cst.Assign) if owner is not None and names else ():
        for place, value in pairs(statement):
            if isinstance(value, cst.Name) and value.value in names and isinstance(place, cst.Attribute):
                yield place


def _is_stored_by_name(name: str, evaluator: Evaluator) -> bool:
    """Whether a method of another object stores to what goes by the same name there: ``self.dataset.scale = 2``."""
    for target in evaluator.tree.nodes(cst.AssignTarget):
        function = evaluator.definitions.enclosing_function(target)
        place: cst.BaseExpression = target.target
        while isinstance(place, (cst.Attribute, cst.Subscript)):
            place = place.value
            is_kept = isinstance(place, cst.Attribute) and place.attr.value == name
            if is_kept and function is not None and function.name.value != _MAKER:
                return True
    return False


def _owner(attribute: cst.Attribute, evaluator: Evaluator) -> cst.ClassDef | None:
    holder = attribute.value
    return evaluator.definitions.receiver(holder) if isinstance(holder, cst.Name) else None


def _is_stored(attribute: cst.Attribute, evaluator: Evaluator) -> bool:
    """Whether a method other than the one that makes the object stores to an attribute, or to a part of it."""
    owner = _owner(attribute, evaluator)
    targets: list[cst.AssignTarget | cst.AugAssign] = []
    if owner is not None:
        targets = [*evaluator.tree.below(owner, cst.AssignTarget), *evaluator.tree.below(owner, cst.AugAssign)]
    for target in targets:
        function = evaluator.definitions.enclosing_function(target)
        place: cst.BaseExpression = target.target
        while isinstance(place, (cst.Attribute, cst.Subscript)) and not is_same(place, attribute):
            place = place.value
        if is_same(place, attribute) and function is not None and function.name.value != _MAKER:
            return True
    return False


def _reads_changed_global(held: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a dataset, or a function that it is given, reads what a function sets again: ``global scale``."""
    declared = {item.name.value for each in evaluator.tree.nodes(cst.Global) for item in each.names}
    if not declared:
        return False
    maker = held if isinstance(held, cst.Call) else _bound_to(held, evaluator)
    given = [argument.value for argument in maker.args] if isinstance(maker, cst.Call) else []
    made = [evaluator.value(held).definition, *map(evaluator.definitions.definition, given)]
    return any(name.value in declared for each in made if each is not None for name in _names(each, evaluator))


def _is_class_changed(held: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether the file stores to an attribute of the class that a dataset is of: ``Patches.scale *= 2``.

    Not where that is done once, beside the functions or while an object is made.
    """
    owner = evaluator.value(held).definition
    stored: list[cst.AssignTarget | cst.AugAssign] = []
    if isinstance(owner, cst.ClassDef):
        stored = [*evaluator.tree.nodes(cst.AssignTarget), *evaluator.tree.nodes(cst.AugAssign)]
    for target in stored:
        place = target.target.value if isinstance(target.target, cst.Attribute) else None
        around = evaluator.tree.enclosing(target, *LOOPS, cst.FunctionDef)
        is_once = around is None or (isinstance(around, cst.FunctionDef) and around.name.value == _MAKER)
        if not isinstance(place, cst.Name) or is_once:
            continue
        value = evaluator.value(place)  # also `cls` of a method of the class
        if value.kind is Kind.CLASS and value.definition is owner:
            return True
    return False


def _names(definition: cst.FunctionDef | cst.ClassDef, evaluator: Evaluator) -> list[cst.Name]:
    return evaluator.tree.below(definition.body, cst.Name)


def _bound_to(held: cst.BaseExpression, evaluator: Evaluator) -> cst.BaseExpression | None:
    """What a variable is bound to, where there is one such thing."""
    bindings = evaluator.flow.definitions(held) if isinstance(held, cst.Name) else []
    return bindings[0].part if len(bindings) == 1 else None
