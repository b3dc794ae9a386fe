"""Conditions that nobody misses, and comments that somebody may."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

_ASKS = frozenset(("is_available", "is_initialized", "device_count", "startswith"))
_BUILTINS = frozenset(("isinstance", "hasattr", "str", "len"))
_CONSTANTS = (cst.SimpleString, cst.Integer, cst.Float)

PRAGMA = re.compile(
    r"#\s*(?:noqa|type:|torchlint|isort|pylint|pyright|mypy|nosec|pragma|fmt|yapf|ruff|region|endregion)", re.IGNORECASE
)
"""Comments that tools read."""


def is_idle_test(test: cst.BaseExpression) -> bool:
    """Return whether a condition only looks: at names, attributes, constants, and at what there is."""
    if isinstance(test, (cst.Name, *_CONSTANTS)):
        return True
    if isinstance(test, cst.Attribute):
        return is_idle_test(test.value)
    if isinstance(test, cst.UnaryOperation):
        return is_idle_test(test.expression)
    if isinstance(test, cst.BooleanOperation):
        return is_idle_test(test.left) and is_idle_test(test.right)
    if isinstance(test, cst.Comparison):
        return is_idle_test(test.left) and all(is_idle_test(target.comparator) for target in test.comparisons)
    if isinstance(test, (cst.Tuple, cst.List, cst.Set)):
        return all(isinstance(each, cst.Element) and is_idle_test(each.value) for each in test.elements)
    if not isinstance(test, cst.Call) or not all(is_idle_test(each.value) for each in test.args):
        return False
    if isinstance(test.func, cst.Attribute):
        return test.func.attr.value in _ASKS and is_idle_test(test.func.value)
    return isinstance(test.func, cst.Name) and test.func.value in _BUILTINS | _ASKS


def asks_for_device(test: cst.BaseExpression) -> bool:
    """Return whether a condition is ``torch.cuda.is_available()`` or the like."""
    asked = test.func if isinstance(test, cst.Call) and not test.args else None
    return isinstance(asked, cst.Attribute) and asked.attr.value == "is_available"


def comments_inside(statement: cst.CSTNode) -> Iterator[str]:
    """Yield the comments in a statement, not those above it."""
    above = {id(line) for line in getattr(statement, "leading_lines", ())}
    return (text for child in statement.children if id(child) not in above for text in _comments(child))


def _comments(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Comment):
        yield node.value
    for child in node.children:
        yield from _comments(child)
