"""Loops whose few passes are written out: what waits in them waits a few times."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, literal, method_call

_ELEMENTS = 8
COUNT = 10
_THREE = 3
_MAX_DEPTH = 3
_DISPLAYS = (cst.Tuple, cst.List, cst.Set, cst.Dict)
_FILLS = frozenset("append appendleft extend extendleft add insert update put push setdefault".split())
_PASSED_ON = ("enumerate", "reversed", "sorted", "list", "tuple", "tqdm", "zip")


def is_handful(loop: cst.For | cst.While, evaluator: Evaluator) -> bool:
    """Return whether a loop goes over a display of a handful of elements, a short range or a short cut.

    ``for eps in (0.0, 0.1)``, ``for i in range(3)``, ``for x in images[:4]``, also by a name that is bound to such.
    """
    return isinstance(loop, cst.For) and _is_short(loop.iter, evaluator, 0)


def takes_first(over: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Return whether only the first few things are taken: ``zip(range(4), loader)``, ``islice(loader, 4)``."""
    if isinstance(over, cst.Name):
        over = bound_to(over, evaluator) or over
    if not isinstance(over, cst.Call) or not over.args:
        return False
    given = [argument.value for argument in over.args]
    if evaluator.names.qualified(over.func) == "itertools.islice":
        count = number(given[1], evaluator) if len(given) == 2 else None
        return count is not None and count <= COUNT
    if evaluator.names.qualified(over.func) == "builtins.zip":
        return any(isinstance(each, cst.Call) and _is_range(each, evaluator) for each in given)
    return identifier(over.func) in ("enumerate", "tqdm", "list", "tuple") and takes_first(given[0], evaluator)


def says_three(loop: cst.For, evaluator: Evaluator) -> bool:
    """Return whether ``for _ in range(3)`` stands at the top level, or in a function that the file calls."""
    is_range = isinstance(loop.iter, cst.Call) and identifier(loop.iter.func) == "range"
    given = [argument.value for argument in loop.iter.args] if isinstance(loop.iter, cst.Call) and is_range else []
    count = literal(given[0]) if len(given) == 1 else None
    if not isinstance(count, int) or not 0 < count <= _THREE:
        return False
    function = evaluator.definitions.enclosing_function(loop)
    return function is None or bool(evaluator.callers(function))


def _is_range(call: cst.Call, evaluator: Evaluator) -> bool:
    return evaluator.names.qualified(call.func) == "builtins.range" and _is_short_range(call, evaluator)


def _is_short(over: cst.BaseExpression, evaluator: Evaluator, depth: int) -> bool:
    if isinstance(over, _DISPLAYS):
        starred = (cst.StarredElement, cst.StarredDictElement)
        return 0 < len(over.elements) <= _ELEMENTS and not any(isinstance(each, starred) for each in over.elements)
    if isinstance(over, cst.Name):
        return depth < _MAX_DEPTH and _is_bound_short(over, evaluator, depth)
    if isinstance(over, cst.Subscript):
        return _is_cut_short(over, evaluator)
    if not isinstance(over, cst.Call):
        return False
    method = method_call(over, "items", "keys", "values")
    if method is not None:
        return _is_short(method.value, evaluator, depth)
    name = evaluator.names.qualified(over.func)
    if name == "builtins.range":
        return _is_short_range(over, evaluator)
    if name in ("torch.tensor", "torch.as_tensor") and over.args:
        return isinstance(over.args[0].value, _DISPLAYS) and _is_short(over.args[0].value, evaluator, depth)
    is_plain = isinstance(over.func, cst.Name) or identifier(over.func) == "tqdm"
    passed = over.args if is_plain and identifier(over.func) in _PASSED_ON else ()
    return any(_is_short(argument.value, evaluator, depth) for argument in passed if argument.keyword is None)


def _is_bound_short(name: cst.Name, evaluator: Evaluator, depth: int) -> bool:
    """Whether all that a name may be bound to is short, for a parameter its default."""
    bindings = evaluator.flow.definitions(name)
    for binding in bindings:
        parameter = evaluator.tree.parent(binding.node) if binding.kind is BindingKind.PARAMETER else None
        value = parameter.default if isinstance(parameter, cst.Param) else binding.value
        is_plain = isinstance(parameter, cst.Param) or (binding.kind is BindingKind.ASSIGNMENT and not binding.path)
        if not is_plain or value is None or not _is_short(value, evaluator, depth + 1):
            return False
    return bool(bindings) and not _is_filled(name, evaluator)


def _is_filled(name: cst.Name, evaluator: Evaluator) -> bool:
    """Whether the file adds to what a name holds: ``found.append(x)``, ``found[key] = x``, ``found += [x]``."""
    if evaluator.usage.stored(name):
        return True
    above = [(other, evaluator.tree.parent(other)) for other in evaluator.tree.named(name.value)]
    return any(
        (isinstance(parent, cst.Attribute) and parent.attr.value in _FILLS)
        or (isinstance(parent, cst.AugAssign) and parent.target is other)
        for other, parent in above
    )


def _is_cut_short(over: cst.Subscript, evaluator: Evaluator) -> bool:
    cut = over.slice[0].slice if len(over.slice) == 1 else None
    if not isinstance(cut, cst.Slice) or cut.upper is None or cut.lower is not None:
        return False
    upper = number(cut.upper, evaluator)
    return upper is not None and 0 < upper <= COUNT


def _is_short_range(call: cst.Call, evaluator: Evaluator) -> bool:
    bounds = [number(argument.value, evaluator) for argument in call.args]
    numbers = [bound for bound in bounds if bound is not None]
    if not numbers or len(numbers) < len(bounds):
        return False
    try:
        return len(range(*numbers)) <= COUNT
    except (TypeError, ValueError, OverflowError):
        return False


def number(expression: cst.BaseExpression, evaluator: Evaluator) -> int | None:
    """Return the number that an expression stands for, also by a name with one binding; None if not known."""
    if isinstance(expression, cst.Name):
        expression = bound_to(expression, evaluator) or expression
    found = literal(expression)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def bound_to(name: cst.Name, evaluator: Evaluator) -> cst.BaseExpression | None:
    """Return the value of a name to which nothing else is bound, None if it is not known."""
    bindings = evaluator.flow.definitions(name)
    is_plain = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT and not bindings[0].path
    return bindings[0].value if is_plain else None
