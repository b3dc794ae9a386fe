"""Arrays that are files: a tensor that shares the memory of one may not be written to, or writes the file."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import bind, is_none, method_call

_MAPS = frozenset(("numpy.memmap", "numpy.lib.format.open_memmap"))
_VIEWS = frozenset(f"numpy.{name}" for name in ("asarray", "asanyarray", "ascontiguousarray", "atleast_1d", "squeeze"))
_DEEPEST = 6


def is_mapped(expression: cst.CSTNode, evaluator: Evaluator, depth: int = 0) -> bool:
    """Return whether an array is, or views, a file that is mapped into memory: ``np.load(path, mmap_mode="r")``."""
    while isinstance(expression, cst.Subscript):
        expression = expression.value
    if depth > _DEEPEST:
        return False
    if isinstance(expression, cst.Call):
        views = _viewed(expression, evaluator)
        return _is_map(expression, evaluator) or any(is_mapped(view, evaluator, depth + 1) for view in views)
    made: list[cst.CSTNode | None] = []
    if isinstance(expression, cst.Name):
        made = [b.value for b in evaluator.flow.definitions(expression) if not b.path]
    elif isinstance(expression, cst.Attribute) and isinstance(expression.value, cst.Name):
        owner = evaluator.definitions.receiver(expression.value)
        held = evaluator.definitions.attribute(owner, expression.attr.value) if owner is not None else []
        made = [binding.value for binding in held if not binding.path]
    return any(value is not None and is_mapped(value, evaluator, depth + 1) for value in made)


def _is_map(call: cst.Call, evaluator: Evaluator) -> bool:
    mode = bind(call.args).get("mmap_mode")
    return evaluator.names.qualified(call.func) in _MAPS or (mode is not None and not is_none(mode))


def _viewed(call: cst.Call, evaluator: Evaluator) -> list[cst.BaseExpression]:
    """The arrays that what a call gives may share memory with."""
    if evaluator.names.qualified(call.func) in _VIEWS:
        return [argument.value for argument in call.args[:1]]
    method = method_call(call, "reshape", "view", "squeeze", "transpose", "ravel")
    return [method.value] if method is not None else []
