"""What runs once for each of a few keys: ``if x.shape not in seen: seen.add(x.shape)``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.tables.container_methods import APPENDS
from torchlint.syntax.calls import identifier, literal, method_call
from torchlint.syntax.canonical import is_same

_OF_FEW = frozenset("shape size dtype device ndim dim type __class__ __name__".split())
"""What has few values in a run, other than the number of a step or the name of a sample."""
EPOCH = re.compile(r"(^|_)(epoch|round|episode|phase|stage)(_|$|s?_?(idx|i|id|num|number)$)", re.IGNORECASE)
"""What counts other than the steps of a run."""

_DEPTH = 3


def is_new_key(test: cst.BaseExpression, holds: bool, region: Sequence[cst.CSTNode], evaluator: Evaluator) -> bool:
    """Return whether a test lets each of a few keys pass once, as it is noted in the region where the test holds."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return is_new_key(test.expression, not holds, region, evaluator)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And if holds else cst.Or):
        return any(is_new_key(side, holds, region, evaluator) for side in (test.left, test.right))
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    key, seen = test.left, test.comparisons[0].comparator
    if not isinstance(test.comparisons[0].operator, cst.NotIn if holds else cst.In):
        return False
    return _is_of_few(key, evaluator) and _lasts(seen, evaluator) and _notes(key, seen, region, evaluator)


def _is_of_few(key: cst.BaseExpression, evaluator: Evaluator, depth: int = 0) -> bool:
    """Whether a key is a shape or a type, or made of nothing else; a constant, an epoch, or a number of many steps."""
    is_quotient = isinstance(key, cst.BinaryOperation) and isinstance(key.operator, cst.FloorDivide)
    if is_quotient or literal(key) is not None or EPOCH.search(identifier(key)):
        return True
    if isinstance(key, cst.Tuple):
        return all(_is_of_few(element.value, evaluator, depth) for element in key.elements)
    if isinstance(key, cst.Name):
        bindings = evaluator.flow.definitions(key) if depth < _DEPTH else []
        parts = [b.part for b in bindings]
        return bool(parts) and all(one is not None and _is_of_few(one, evaluator, depth + 1) for one in parts)
    if isinstance(key, cst.Attribute):
        return key.attr.value in _OF_FEW
    if not isinstance(key, cst.Call):
        return False
    if identifier(key.func) in ("tuple", "str") and len(key.args) == 1:
        return _is_of_few(key.args[0].value, evaluator, depth)
    return identifier(key.func) in _OF_FEW


def _lasts(seen: cst.BaseExpression, evaluator: Evaluator) -> bool:
    """Whether a collection is kept from pass to pass: by an object or a caller, or from before all loops."""
    if not isinstance(seen, cst.Name):
        return isinstance(seen, cst.Attribute)
    around = evaluator.tree.enclosing(seen, *LOOPS, cst.FunctionDef)
    bindings = evaluator.flow.definitions(seen)
    own = [b for b in bindings if b.kind is not BindingKind.PARAMETER and evaluator.tree.enclosing(b.node, *LOOPS)]
    if not bindings or own:
        return False
    is_made_here = any(b.value is not None and evaluator.tree.within(b.node, around) for b in bindings if around)
    return isinstance(around, LOOPS) or not is_made_here


def _notes(
    key: cst.BaseExpression, seen: cst.BaseExpression, region: Sequence[cst.CSTNode], evaluator: Evaluator
) -> bool:
    """Whether a region puts a key into a collection."""
    below = evaluator.tree.below
    for call in (call for line in region for call in below(line, cst.Call)):
        method = method_call(call, *APPENDS, "add")
        if method is not None and is_same(method.value, seen) and call.args and is_same(call.args[0].value, key):
            return True
    put = [target.target for line in region for target in below(line, cst.AssignTarget)]
    items = (one for one in put if isinstance(one, cst.Subscript) and is_same(one.value, seen) and len(one.slice) == 1)
    indices = (item.slice[0].slice for item in items)
    return any(isinstance(index, cst.Index) and is_same(index.value, key) for index in indices)
