"""Loops that try things out: one pass for each written-out setting, or one for each batch size until memory is out."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.handfuls import bound_to, is_handful
from torchlint.syntax.calls import identifier, literal, method_call

# A function that the loops of other files may call: its few passes are part of a step, as the epochs of PPO are.
_OF_A_STEP = re.compile(r"step|batch|iter|update|inner|adapt|learn|optimi[sz]e|critic|rollout|ppo", re.IGNORECASE)
_DTYPES = re.compile(r"^b?float\d*|^half$|^double$|^u?int\d+$|^bool$|^channels_last|^contiguous_format$")
_WRAPPERS = ("enumerate", "reversed", "sorted", "list", "tuple", "tqdm", "zip", "product")
_ELEMENTS = 8
_OUT_OF_MEMORY = re.compile(r"OutOfMemory|^RuntimeError$|^Exception$|^BaseException$")


def tries_settings(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop goes over a few settings, each written out: names, numbers, dtypes, also the pairs of two.

    Not in methods and functions that are named for a step, which others may call in a loop.
    """
    if not isinstance(loop, cst.For) or _is_of_step(loop, evaluator):
        return False
    return _is_of_settings(loop.iter, evaluator)


def draws_handful(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop takes a handful of batches from what its function begins to go through.

    ``it = iter(loader)``, ``for _ in range(3): batch = next(it)``
    """
    if not is_handful(loop, evaluator) or _is_of_step(loop, evaluator):
        return False
    drawn = [
        c for c in evaluator.tree.below(loop.body, cst.Call) if evaluator.names.qualified(c.func) == "builtins.next"
    ]
    return bool(drawn) and all(bool(call.args) and _is_begun(call.args[0].value, evaluator) for call in drawn)


def seeks_batch_size(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop multiplies or halves a size until memory is out: ``except RuntimeError: ...``."""
    tries = [line for line in loop.body.body if isinstance(line, cst.Try)]
    below = evaluator.tree.descendants(loop.body) if tries else ()
    resized = {name: statement for statement in below if (name := _resized(statement))}
    for line in tries:
        handlers = [handler for handler in line.handlers if _catches(handler)]
        if not handlers:
            continue
        ends = any(evaluator.tree.below(handler, kind) for handler in handlers for kind in (cst.Break, cst.Return))
        used = {name.value for name in evaluator.tree.below(line.body, cst.Name)} & resized.keys()
        if any(ends or evaluator.tree.within(resized[name], handlers[0]) for name in used):
            return True
    return False


def _is_of_step(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    function = evaluator.definitions.enclosing_function(loop)
    if function is None:
        return False
    return evaluator.definitions.owner(function) is not None or _OF_A_STEP.search(function.name.value) is not None


def _is_of_settings(over: cst.BaseExpression, evaluator: Evaluator) -> bool:
    if isinstance(over, cst.Name):
        value = bound_to(over, evaluator)
        return value is not None and not isinstance(value, cst.Name) and _is_of_settings(value, evaluator)
    if isinstance(over, (cst.Tuple, cst.List, cst.Set)):
        return 0 < len(over.elements) <= _ELEMENTS and all(_is_setting(each.value) for each in over.elements)
    if isinstance(over, cst.Dict):
        keys = (each.key if isinstance(each, cst.DictElement) else None for each in over.elements)
        return len(over.elements) <= _ELEMENTS and all(literal(key) is not None for key in keys)
    method = method_call(over, "items", "keys")
    if method is not None:
        return isinstance(method.value, (cst.Name, cst.Dict)) and _is_of_settings(method.value, evaluator)
    if not isinstance(over, cst.Call) or identifier(over.func) not in _WRAPPERS:
        return False
    given = [argument.value for argument in over.args if argument.keyword is None and not argument.star]
    return bool(given) and all(_is_of_settings(each, evaluator) for each in given)


def _is_setting(element: cst.BaseExpression) -> bool:
    """Whether an element is a constant, a dtype or a group of such."""
    if isinstance(element, (cst.Tuple, cst.List)):
        return all(_is_setting(each.value) for each in element.elements)
    is_dtype = isinstance(element, cst.Attribute) and _DTYPES.match(element.attr.value) is not None
    return is_dtype or literal(element) is not None or (isinstance(element, cst.Name) and element.value == "None")


def _is_begun(source: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether an iterator is made where it is used, not handed in or kept."""
    if not isinstance(source, cst.Name):
        return isinstance(source, cst.Call)
    bindings = evaluator.flow.definitions(source)
    return bool(bindings) and all(binding.kind is BindingKind.ASSIGNMENT for binding in bindings)


def _catches(handler: cst.ExceptHandler) -> bool:
    if handler.type is None:
        return False
    several = handler.type.elements if isinstance(handler.type, cst.Tuple) else ()
    caught = [each.value for each in several] or [handler.type]
    return any(_OUT_OF_MEMORY.search(identifier(each)) for each in caught)


def _resized(statement: cst.CSTNode) -> str:
    """The name of what a statement multiplies or halves: ``size *= 2``, ``size = size // 2``; "" if it does not."""
    if isinstance(statement, cst.AugAssign):
        is_by = isinstance(statement.operator, (cst.MultiplyAssign, cst.FloorDivideAssign))
        target, factor = statement.target, statement.value
    elif isinstance(statement, cst.Assign) and isinstance(statement.value, cst.BinaryOperation):
        is_by = isinstance(statement.value.operator, (cst.Multiply, cst.FloorDivide))
        target, factor = statement.targets[0].target, statement.value.right
        is_by = is_by and identifier(statement.value.left) == identifier(target)
    else:
        return ""
    return target.value if is_by and _is_factor(factor) and isinstance(target, cst.Name) else ""


def _is_factor(number: cst.BaseExpression) -> bool:
    factor = literal(number)
    return isinstance(factor, int) and factor > 1
