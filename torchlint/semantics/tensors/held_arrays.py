"""What a loop takes out of a container that the file writes out: ``for k, v in {k: np.stack(r) for ...}.items()``."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.binding.scopes import Binding, BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import method_call

_LISTS = (cst.ListComp, cst.GeneratorExp)
_MAX_DEPTH = 4


def taken_from(binding: Binding, evaluator: Evaluator) -> Sequence[cst.BaseExpression] | None:
    """Return the expressions of which a binding takes what they give, None where they are not all visible.

    It is bound by a loop, or unpacks a comprehension: ``a, b = (np.stack(p) for p in parts)``.
    """
    value = binding.value
    if binding.kind is BindingKind.ITERATION and value is not None:
        return _items(value, binding.path, evaluator, 0)
    is_unpacked = binding.kind is BindingKind.ASSIGNMENT and len(binding.path) == 1
    return [value.elt] if is_unpacked and isinstance(value, _LISTS) else None


def _items(
    container: cst.BaseExpression, path: tuple[int, ...], evaluator: Evaluator, depth: int
) -> Sequence[cst.BaseExpression] | None:
    """The elements of a list, or those of the pairs that ``enumerate``, ``zip`` and ``items`` give at a place."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(container, cst.Name):
        made = _made(container, evaluator)
        return _items(made, path, evaluator, depth + 1) if made is not None else None
    if isinstance(container, cst.Call):
        return _of_call(container, path, evaluator, depth + 1)
    if path:
        return None
    if isinstance(container, (cst.Tuple, cst.List)):
        return [element.value for element in container.elements]
    return [container.elt] if isinstance(container, _LISTS) else None


def _of_call(
    call: cst.Call, path: tuple[int, ...], evaluator: Evaluator, depth: int
) -> Sequence[cst.BaseExpression] | None:
    method = method_call(call, "values", "items")
    if method is not None and path == ((1,) if method.attr.value == "items" else ()):
        return _values(method.value, evaluator)
    name = evaluator.names.qualified(call.func)
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    if name == "builtins.enumerate" and path[:1] == (1,) and given:
        return _items(given[0], path[1:], evaluator, depth)
    is_zipped = name == "builtins.zip" and bool(path) and 0 <= path[0] < len(given) == len(call.args)
    return _items(given[path[0]], path[1:], evaluator, depth) if is_zipped else None


def _values(mapping: cst.BaseExpression, evaluator: Evaluator) -> Sequence[cst.BaseExpression] | None:
    """What a dictionary holds that is written out, or made by a comprehension."""
    made = _made(mapping, evaluator) if isinstance(mapping, cst.Name) else mapping
    if isinstance(made, cst.DictComp):
        return [made.value]
    if not isinstance(made, cst.Dict) or not all(isinstance(e, cst.DictElement) for e in made.elements):
        return None
    return [element.value for element in made.elements]


def _made(name: cst.Name, evaluator: Evaluator) -> cst.BaseExpression | None:
    """What a variable is bound to once, where nothing puts anything else into it."""
    bindings = evaluator.flow.definitions(name)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGNMENT or bindings[0].path:
        return None
    is_changed = bool(evaluator.usage.stored(name) or evaluator.usage.appended(name))
    return None if is_changed else bindings[0].value
