"""Branches that tell of a value that should not occur: ``if loss > 100: print("diverged", loss)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, method_call

_WARNS = frozenset("warn warning error exception critical".split())
_PRINTS = _WARNS | frozenset("print info debug".split())
_TELLS = _PRINTS | frozenset("log write".split())


def is_alarm(statement: cst.If, evaluator: Evaluator) -> bool:
    """Return whether a branch that a tensor's value decides warns of it, or does nothing but tell of it."""
    lines = statement.body.body
    told = [_told(line) for line in lines]
    tells = bool(set(told) & _WARNS) or all(name in _TELLS for name in told)
    return tells and _asks_for_value(statement.test, evaluator)


def only_tells(block: cst.BaseSuite) -> bool:
    """Return whether a block does nothing but print, assert and raise errors, in loops and branches too."""
    return all(map(_is_telling, block.body))


def _is_telling(line: cst.CSTNode) -> bool:
    if isinstance(line, cst.SimpleStatementLine):
        return all(isinstance(small, (cst.Assert, cst.Raise)) for small in line.body) or _told(line) in _PRINTS
    if isinstance(line, (cst.For, cst.If)) and line.orelse is not None:
        return False
    return isinstance(line, (cst.For, cst.If)) and only_tells(line.body)


def _told(line: cst.BaseStatement | cst.BaseSmallStatement) -> str:
    """The name of the function that a line calls and whose result it drops."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    called = small.value if isinstance(small, cst.Expr) else None
    return identifier(called.func) if isinstance(called, cst.Call) else ""


def _asks_for_value(test: cst.BaseExpression, evaluator: Evaluator) -> bool:
    if isinstance(test, cst.UnaryOperation):
        return _asks_for_value(test.expression, evaluator)
    if isinstance(test, cst.BooleanOperation):
        return _asks_for_value(test.left, evaluator) or _asks_for_value(test.right, evaluator)
    if isinstance(test, cst.Comparison):
        sides = (test.left, *(target.comparator for target in test.comparisons))
        is_order = not any(isinstance(target.operator, (cst.Is, cst.IsNot)) for target in test.comparisons)
        return is_order and any(_asks_for_value(side, evaluator) for side in sides)
    return method_call(test, "item") is not None or evaluator.value(test).is_tensor
