"""Batches whose items a program moves and puts back: ``for key, x in batch.items(): batch[key] = x.to(device)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evaluate.entries import is_same_variable, key_of, put_target
from torchlint.semantics.values import Device, Kind, Value
from torchlint.syntax.calls import method_call

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

_ALL = ("items", "keys")


def placed(batch: Value, name: cst.Name, evaluator: Evaluator) -> Value:
    """Return what a name holds of which a loop before has put back each item, perhaps on another device."""
    if batch.kind is not Kind.BATCH or batch.device is not Device.CPU:
        return batch
    for item in evaluator.usage.stored(name):
        loop = evaluator.tree.enclosing(item, cst.For, cst.While, cst.FunctionDef)
        if isinstance(loop, cst.For) and _is_over(loop.iter, name) and _is_past(name, loop, item, evaluator):
            device = evaluator.value(item).device
            if device in (Device.ACCELERATOR, Device.EITHER) or _may_be_moved(item, evaluator):
                return batch._replace(device=device)
    return batch


def item(found: Value, read: cst.Subscript, key: object, evaluator: Evaluator) -> Value:
    """Return what a batch holds under a key under which an earlier line has put it back on another device."""
    owner = read.value
    if found.device is not Device.CPU or key is None or not isinstance(owner, cst.Name):
        return found
    for put in evaluator.usage.stored(owner):
        target = put_target(put, evaluator)
        block = evaluator.tree.enclosing(put, cst.For, cst.While, cst.FunctionDef)
        if target is None or block is None or key_of(target) != key or not evaluator.tree.within(read, block):
            continue
        if evaluator.tree.order(read) > evaluator.tree.last(put) and is_same_variable(owner, target, evaluator):
            device = evaluator.value(put).device
            if device in (Device.ACCELERATOR, Device.EITHER):
                return found._replace(device=device)
    return found


def _may_be_moved(put: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether nothing is known of what a function makes of an item: ``to_var(x)``."""
    return isinstance(put, cst.Call) and isinstance(put.func, cst.Name) and not evaluator.value(put).known


def _is_over(iterated: cst.BaseExpression, name: cst.Name) -> bool:
    """Whether a loop goes over the keys of a variable: ``batch``, ``batch.items()``, ``list(batch)``."""
    keys = method_call(iterated, *_ALL)
    if keys is None and isinstance(iterated, cst.Call) and len(iterated.args) == 1:
        return _is_over(iterated.args[0].value, name)
    owner = keys.value if keys is not None else iterated
    return isinstance(owner, cst.Name) and owner.value == name.value


def _is_past(name: cst.Name, loop: cst.For, put: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a name is read after a loop that puts something back under each key, in the same variable."""
    target = put_target(put, evaluator)
    if target is None or key_of(target) is not None or evaluator.tree.order(name) <= evaluator.tree.last(loop):
        return False
    around = evaluator.tree.enclosing(loop, cst.For, cst.While, cst.FunctionDef)
    return around is not None and evaluator.tree.within(name, around) and is_same_variable(name, target, evaluator)
