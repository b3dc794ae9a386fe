"""Branches that tell of a value that should not occur: ``if loss > 100: print("diverged", loss)``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, method_call
from torchlint.syntax.walk import Tree

_WARNS = frozenset("warn warning error exception critical".split())
_PRINTS = _WARNS | frozenset("print info debug".split())
_TELLS = _PRINTS | frozenset("log write".split())


def is_alarm(statement: cst.If, evaluator: Evaluator) -> bool:
    """Return whether a branch that a tensor's value decides warns of it, or does nothing but tell of it.

    Or one that warns and leaves, whatever decides: ``if found.size(0) == 0: logger.warning(...); return``.
    """
    lines = statement.body.body
    told = [_told(line) for line in lines]
    warns = not _WARNS.isdisjoint(told)
    if warns and ends_in_jump(statement.body):
        return True
    tells = warns or all(name in _TELLS for name in told)
    return tells and _asks_for_value(statement.test, evaluator)


def only_tells(block: cst.BaseSuite, tree: Tree) -> bool:
    """Return whether a block does nothing but print, assert and raise errors, in loops and branches too.

    What it works out for that is not read elsewhere.
    """
    return all(_is_telling(line, block, tree) for line in block.body)


def _is_telling(line: cst.CSTNode, block: cst.BaseSuite, tree: Tree) -> bool:
    if isinstance(line, cst.SimpleStatementLine):
        is_end = all(isinstance(small, (cst.Assert, cst.Raise)) for small in line.body)
        return is_end or _told(line) in _PRINTS or all(_is_for(small, block, tree) for small in line.body)
    if isinstance(line, (cst.For, cst.If)) and line.orelse is not None:
        return False
    body = line.body.body if isinstance(line, (cst.For, cst.If)) else ()
    return bool(body) and all(_is_telling(inner, block, tree) for inner in body)


def _is_for(line: cst.BaseSmallStatement, block: cst.BaseSuite, tree: Tree) -> bool:
    """Whether a line binds a variable that its function only reads in a block."""
    target = line.targets[0].target if isinstance(line, cst.Assign) and len(line.targets) == 1 else None
    if not isinstance(target, cst.Name):
        return False
    frame = tree.enclosing(block, cst.FunctionDef)
    uses = (use for use in tree.named(target.value) if frame is None or tree.within(use, frame))
    return all(tree.within(use, block) for use in uses)


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
