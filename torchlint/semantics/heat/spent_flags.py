"""Flags that the first pass sets down: ``if self.first: ...; self.first = False``."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import literal
from torchlint.syntax.canonical import is_same


def is_spent(statement: cst.If, evaluator: Evaluator) -> bool:
    """Return whether the branch, or what follows it, sets down the flag that an ``if`` tests.

    The flag is an attribute, or a variable that is on before the loop only: ``if first: first = False``.
    """
    return _in_branch(statement.test, statement.body, evaluator) or _behind(statement, evaluator)


def _in_branch(test: cst.BaseExpression, body: cst.BaseSuite, evaluator: Evaluator, off: bool = False) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _in_branch(test.left, body, evaluator) or _in_branch(test.right, body, evaluator)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.expression, cst.Name) and not off:
        return isinstance(test.operator, cst.Not) and _in_branch(test.expression, body, evaluator, off=True)
    if not isinstance(test, cst.Attribute) and not _is_set_before_loop(test, not off, evaluator):
        return False
    written = (target for target in evaluator.tree.below(body, cst.AssignTarget) if is_same(target.target, test))
    assigned = (evaluator.tree.parent(target) for target in written)
    return any(isinstance(a, cst.Assign) and literal(a.value) is off for a in assigned)


def _is_set_before_loop(test: cst.BaseExpression, value: bool, evaluator: Evaluator) -> bool:
    """Whether a variable has a value when a loop begins, and is never given it in the loop."""
    loop = evaluator.tree.enclosing(test, *LOOPS)
    definitions = evaluator.flow.definitions(test) if isinstance(test, cst.Name) else []
    known = [literal(b.part) for b in definitions]
    if loop is None or value not in known or not all(isinstance(each, bool) for each in known):
        return False
    return not any(
        evaluator.tree.within(b.node, loop) for b, each in zip(definitions, known, strict=True) if each is value
    )


def _behind(statement: cst.If, evaluator: Evaluator) -> bool:
    """Whether a line behind an ``if``, in the same block, sets an attribute to what does not enter it again."""
    test, enters = statement.test, True
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, enters = test.expression, not enters
    if not isinstance(test, cst.Attribute):
        return False  # a variable of the function is another one in the next pass
    block = evaluator.tree.parent(statement)
    lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    behind = lines[lines.index(statement) + 1 :] if statement in lines else []
    later = [small for line in behind if isinstance(line, cst.SimpleStatementLine) for small in line.body]
    return any(
        isinstance(small, cst.Assign)
        and literal(small.value) is not enters
        and isinstance(literal(small.value), bool)
        and any(is_same(target.target, test) for target in small.targets)
        for small in later
    )
