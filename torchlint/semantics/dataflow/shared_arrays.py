"""Arrays that somebody else than a copy of them goes on to use, perhaps to write to."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier
from torchlint.syntax.canonical import canonical, is_same

_COPYING = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray")


def is_shared(array: cst.BaseExpression, copy: cst.CSTNode, whole: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether an array is handed out or kept beside a copy of it, or that is one of two buffers, or a parameter.

    ``whole`` is the chain of methods that begins with the copy. An optimizer writes to parameters.
    """
    if _is_returned_beside(array, copy, evaluator) or _is_kept_beside(array, whole, evaluator):
        return True
    holder = _holder(whole, evaluator)
    return holder == "Parameter" or (holder == "register_buffer" and _is_copied_again(array, copy, evaluator))


def _is_returned_beside(array: cst.BaseExpression, copy: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a function gives the array, besides what is computed of it, so that a caller may write to it."""
    function = evaluator.definitions.enclosing_function(copy)
    results = evaluator.definitions.results(function) if function is not None else ()
    for parts in map(_parts, results):
        others = [part for part in parts if not _is_same_array(part, array, evaluator)]
        if len(others) < len(parts) and any(_is_of(copy, other, evaluator) for other in others):
            return True
    return False


def _is_kept_beside(array: cst.BaseExpression, whole: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether an object keeps the array and the copy, for anyone to write to: ``self.y = tensor(self.x)``."""
    if not isinstance(array, cst.Attribute):
        return False
    kept = (place for place in _places(whole, evaluator) if isinstance(place, cst.Attribute))
    deleted = (item for statement in evaluator.tree.nodes(cst.Del) for item in _targets(statement.target))
    return any(not is_same(place, array) for place in kept) and not any(is_same(item, array) for item in deleted)


def _places(part: cst.CSTNode, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """Return what a part of a statement is bound to, also in a container that is written out or by a variable."""
    statement = evaluator.tree.parent(part)
    while isinstance(statement, (cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict)):
        statement = evaluator.tree.parent(statement)
    if isinstance(statement, cst.AnnAssign):
        return [statement.target]
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    places = [place for target in targets for place in _targets(target.target)]
    names = [place for place in places if isinstance(place, cst.Name)]
    return places + [further for name in names for further in _kept_as(name, evaluator)]


def _kept_as(name: cst.Name, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """Return what a variable is bound to afterwards, as it is."""
    uses = (use for use in evaluator.tree.named(name.value) if use is not name)
    read = (use for use in uses if any(binding.node is name for binding in evaluator.flow.definitions(use)))
    statements = (evaluator.tree.parent(use) for use in read)
    return [target.target for each in statements if isinstance(each, cst.Assign) for target in each.targets]


def _targets(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the places that a target names: those of a tuple one by one."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for element in target.elements for part in _targets(element.value)]
    return [target]


def _is_same_array(part: cst.BaseExpression, array: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a part of a result may be an array: the same expression, perhaps bound by the same statement."""
    if canonical(part) != canonical(array):
        return False
    bound = [{id(b.node) for b in evaluator.flow.definitions(e)} for e in (part, array) if isinstance(e, cst.Name)]
    return len(bound) < len((part, array)) or not bound[0].isdisjoint(bound[1])


def _is_of(copy: cst.CSTNode, part: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether a part of a result is, or is computed of, a copy: also by the variable that holds it."""
    if evaluator.tree.within(copy, part):
        return True
    bindings = evaluator.flow.definitions(part) if isinstance(part, cst.Name) else []
    return any(binding.value is not None and evaluator.tree.within(copy, binding.value) for binding in bindings)


def _parts(result: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what a function gives: the elements of a container that is written out, or all of it."""
    if isinstance(result, (cst.Tuple, cst.List, cst.Dict)):
        return [part for element in result.elements for part in _parts(element.value)]
    if isinstance(result, cst.Call) and identifier(result.func) == "dict":
        return [argument.value for argument in result.args]
    return [result]


def _holder(whole: cst.CSTNode, evaluator: Evaluator) -> str:
    """Return what makes something that stays of a copy: ``nn.Parameter(copy)``, ``self.register_buffer(..., copy)``."""
    argument = evaluator.tree.parent(whole)
    made = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    return identifier(made.func) if isinstance(made, cst.Call) else ""


def _is_copied_again(array: cst.BaseExpression, copy: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether the same function makes another tensor of the array, which may share its memory or the other's."""
    frame = evaluator.definitions.enclosing_function(copy) or evaluator.tree.module
    others = (each for each in evaluator.tree.below(frame, cst.Call) if each is not copy and each.args)
    copies = (each for each in others if evaluator.names.qualified(each.func) in _COPYING)
    return any(canonical(each.args[0].value) == canonical(array) for each in copies)
