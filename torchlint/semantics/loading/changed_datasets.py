"""Datasets that a program changes elsewhere than in the loop over epochs, which workers that are kept would miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.canonical import is_same

_MAKER = "__init__"


def is_changed_elsewhere(held: Iterable[cst.BaseExpression], evaluator: Evaluator) -> bool:
    """Return whether a method of the object that holds a dataset stores to what it is made of, or a global is set."""
    for one in held:
        if isinstance(one, cst.Attribute) and any(_is_stored(part, evaluator) for part in _parts(one, evaluator)):
            return True
        if _reads_changed_global(one, evaluator):
            return True
    return False


def _parts(kept: cst.Attribute, evaluator: Evaluator) -> Iterator[cst.Attribute]:
    """An attribute of ``self``, and those that hold what it was made of: ``self.opt = opt; self.data = Data(opt)``."""
    yield kept
    owner = _owner(kept, evaluator)
    bindings = evaluator.definitions.attribute(owner, kept.attr.value) if owner is not None else []
    made = [binding.value for binding in bindings if isinstance(binding.value, cst.Call)]
    names = {name.value for call in made for argument in call.args for name in evaluator.tree.below(argument, cst.Name)}
    for statement in evaluator.tree.below(owner, cst.Assign) if owner is not None and names else ():
        if isinstance(statement.value, cst.Name) and statement.value.value in names:
            yield from (t.target for t in statement.targets if isinstance(t.target, cst.Attribute))


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
    """Whether the class of a dataset reads a variable of the module that a function sets again: ``global scale``."""
    made = evaluator.value(held).definition
    declared = {item.name.value for each in evaluator.tree.nodes(cst.Global) for item in each.names}
    if not declared or not isinstance(made, cst.ClassDef):
        return False
    return any(name.value in declared for name in evaluator.tree.below(made.body, cst.Name))
