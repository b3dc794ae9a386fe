"""Files of which the program that loads them shows that they hold more than tensors in plain containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_OF_MODULES = frozenset("eval train parameters named_parameters modules children state_dict forward zero_grad".split())
_MOVES = ("to", "cuda", "cpu", "float", "half", "double", "eval", "train")
_OF_TENSORS = frozenset("size unsqueeze squeeze permute numel dim requires_grad_ detach contiguous".split())
"""What neither a module nor an array of NumPy has, or only tensors are asked for."""

_DEPTH = 3
"""Through how many variables what is loaded is followed."""

_LOADS_STATE = re.compile(r"(^|_)load_(\w+_)?(state|dict|weights|params)|state_dict")
_SETTINGS = frozenset("args opt opts options cfg config conf hparams hyper_parameters".split())
"""Keys under which checkpoints hold what a program was told, mostly as an object."""


def loads_object(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether what a call loads is a model that the file runs or saves as a whole, an array, or has settings."""
    saves = (other for other in evaluator.tree.calls_named("save") if other.args)
    saved = [other.args[0].value for other in saves if evaluator.names.qualified(other.func) == "torch.save"]
    if any(_is_whole(value, call, evaluator) for value in saved):
        return True
    return any(_is_object(use, evaluator) for use in _uses(call, evaluator))


def loads_tensors(call: cst.Call, evaluator: Evaluator) -> bool:
    """Return whether something shows that what a call loads are tensors: a module that loads its state, a size."""
    return any(_is_state(use, evaluator) for use in _uses(call, evaluator))


def _is_state(use: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Whether a value, or an item of it, is given to ``load_state_dict``, or asked what only tensors are asked."""
    value: cst.CSTNode = use
    while True:
        parent = evaluator.tree.parent(value)
        if isinstance(parent, cst.Subscript) and parent.value is value:
            value = parent
        elif isinstance(parent, cst.Attribute):
            call = evaluator.tree.parent(parent)
            if parent.attr.value in _OF_TENSORS:
                return True
            if parent.attr.value not in ("get", "pop", "items") or not isinstance(call, cst.Call):
                return False
            if parent.attr.value == "items":
                return True
            value = call
        elif isinstance(parent, cst.Arg):
            taker = evaluator.tree.parent(parent)
            return isinstance(taker, cst.Call) and _LOADS_STATE.search(identifier(taker.func)) is not None
        elif isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name) and value is not use:
            reads = _reads(parent.targets[0].target, parent.value, evaluator) if depth < _DEPTH else ()
            return any(_is_state(name, evaluator, depth + 1) for name in reads)
        else:
            return False


def _reads(target: cst.Name, value: cst.BaseExpression, evaluator: Evaluator) -> Iterator[cst.Name]:
    """The reads of a variable that is bound to a value."""
    for name in evaluator.tree.named(target.value):
        if name is not target and any(binding.value is value for binding in evaluator.flow.definitions(name)):
            yield name


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
