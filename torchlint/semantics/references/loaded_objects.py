"""Files of which the program that loads them shows that they hold more than tensors in plain containers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_OF_MODULES = frozenset("eval train parameters named_parameters modules children state_dict forward zero_grad".split())
_MOVES = ("to", "cuda", "cpu", "float", "half", "double", "eval", "train")
_SETTINGS = frozenset("args opt opts options cfg config conf hparams hyper_parameters".split())
"""Keys under which checkpoints hold what a program was told, mostly as an object."""


def loads_object(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether what a call loads is a model that the file runs or saves as a whole, an array, or has settings."""
    saves = (other for other in evaluator.tree.nodes(cst.Call) if identifier(other.func) == "save" and other.args)
    saved = [other.args[0].value for other in saves if evaluator.names.qualified(other.func) == "torch.save"]
    if any(_is_whole(value, call, evaluator) for value in saved):
        return True
    return any(_is_object(use, evaluator) for use in _uses(call, evaluator))


def _is_whole(saved: cst.BaseExpression, call: cst.Call, evaluator: Evaluator) -> bool:
    """Whether a model is saved, or what may be one by the name that something has which is loaded."""
    value = evaluator.value(saved)
    if value.kind is Kind.MODULE or value.known:
        return value.kind is Kind.MODULE
    statement = evaluator.tree.parent(call)
    targets = [target.target for target in statement.targets] if isinstance(statement, cst.Assign) else []
    return any(identifier(target) == identifier(saved) != "" for target in targets)


def _uses(call: cst.Call, evaluator: Evaluator) -> Iterator[cst.BaseExpression]:
    """What a call gives where it stands, and each variable that holds it, also once it was moved."""
    moved: cst.BaseExpression = call
    yield moved
    while (above := _moved(moved, evaluator)) is not None:
        moved = above
        yield moved
    statement = evaluator.tree.parent(moved)
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        if isinstance(target.target, cst.Attribute):
            yield from (a for a in evaluator.tree.nodes(cst.Attribute) if is_same(a, target.target))
        elif isinstance(target.target, cst.Name):
            for name in evaluator.tree.named(target.target.value):
                if any(binding.value is moved for binding in evaluator.scopes.bindings(name)):
                    yield name


def _moved(value: cst.BaseExpression, evaluator: Evaluator) -> cst.Call | None:
    method = evaluator.tree.parent(value)
    call = evaluator.tree.parent(method) if isinstance(method, cst.Attribute) else None
    is_moved = isinstance(call, cst.Call) and call.func is method and method_call(call, *_MOVES) is not None
    return call if is_moved and isinstance(call, cst.Call) else None


def _is_object(use: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a value is called, asked for what modules have, made a tensor of as an array, or has settings."""
    parent = evaluator.tree.parent(use)
    if isinstance(parent, cst.Call):
        return parent.func is use
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in _OF_MODULES
    if isinstance(parent, cst.Subscript) and parent.value is use:
        index = parent.slice[0].slice
        is_setting = isinstance(index, cst.Index) and literal(index.value) in _SETTINGS
        return is_setting or _is_array(parent, evaluator)
    return _is_array(use, evaluator)


def _is_array(use: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a value is given to a function that takes arrays."""
    argument = evaluator.tree.parent(use)
    taker = evaluator.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    name = evaluator.names.qualified(taker.func) if isinstance(taker, cst.Call) else None
    return name is not None and (name == "torch.from_numpy" or name.startswith("numpy."))
