"""Tests that ask on which device a tensor lives, or the program runs."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.syntax.calls import identifier, literal

_NAMED = re.compile(r"(^|_)device(_type|_name|_str)?$")


def leaves_host(test: cst.BaseExpression, taken: bool) -> bool:
    """Return whether the branch that is taken when ``test`` is ``taken`` is one for tensors in host memory only."""
    if isinstance(test, cst.Attribute):
        return test.attr.value == ("is_cpu" if taken else "is_cuda")
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
    if not isinstance(operator, (cst.Equal, cst.NotEqual)) or not _is_device(test.left):
        return False
    equal = isinstance(operator, cst.Equal) is taken
    return _named(right) == ("cpu" if equal else "cuda")


def _is_device(expression: cst.BaseExpression) -> bool:
    """Whether an expression is the device of something, or the type or name of one."""
    if isinstance(expression, cst.Call) and identifier(expression.func) == "str" and len(expression.args) == 1:
        expression = expression.args[0].value
    if isinstance(expression, cst.Attribute) and expression.attr.value == "type":
        return identifier(expression.value) == "device"
    return isinstance(expression, (cst.Name, cst.Attribute)) and _NAMED.search(identifier(expression)) is not None


def _named(expression: cst.BaseExpression) -> object:
    """The device that ``"cpu"`` or ``torch.device("cpu")`` names."""
    if isinstance(expression, cst.Call) and identifier(expression.func) == "device" and len(expression.args) == 1:
        expression = expression.args[0].value
    return literal(expression)
