"""Flags and countdowns that the first passes use up: ``if self.first: ...; self.first = False``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.syntax.calls import identifier, is_none, literal
from torchlint.syntax.canonical import is_same


def is_spent(statement: cst.If, branch: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Return whether a branch, or what follows it, sees to it that the test of an ``if`` leads there no more.

    What is tested is a flag that outlives the pass, an attribute or its item, a variable that has its value before the
    loop only, a number of passes that are left, or whether the object has an attribute.
    """
    enters = branch is statement.body
    body = branch.body if isinstance(branch, cst.Else) else branch
    parts = list(_conjuncts(statement.test)) if enters else [statement.test]
    return any(
        _is_counted_down(part, body, evaluator)
        or _gets_attribute(part, body, enters, evaluator)
        or _is_set_down(part, statement, body, enters, evaluator)
        for part in parts
    )


def fills(test: cst.BaseExpression, rest: Sequence[cst.CSTNode]) -> bool:
    """Return whether lines behind an early exit make what it finds made: ``if self.scale is not None: return``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Attribute):
        return False
    asked, made = test.comparisons[0], test.left
    if not isinstance(asked.operator, cst.IsNot) or not is_none(asked.comparator):
        return False
    small = (each for line in rest if isinstance(line, cst.SimpleStatementLine) for each in line.body)
    targets = (target for each in small if isinstance(each, cst.Assign) for target in each.targets)
    return any(is_same(target.target, made) for target in targets)


def _conjuncts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from _conjuncts(test.left)
        yield from _conjuncts(test.right)
    else:
        yield test


def _flag(test: cst.BaseExpression, enters: bool) -> tuple[cst.BaseExpression, bool]:
    """The variable that is tested, and the value of it that leads into the branch."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _flag(test.expression, not enters)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        asked = test.comparisons[0]
        known = literal(asked.comparator)
        if isinstance(asked.operator, (cst.Is, cst.Equal)) and isinstance(known, bool):
            return test.left, enters is known
    return test, enters


def _is_set_down(
    test: cst.BaseExpression, statement: cst.If, body: cst.CSTNode, enters: bool, evaluator: Evaluator
) -> bool:
    flag, value = _flag(test, enters)
    if not isinstance(flag, (cst.Name, cst.Attribute, cst.Subscript)):
        return False
    if isinstance(flag, cst.Name) and not _is_set_before_loop(flag, value, evaluator):
        return False
    inside = evaluator.tree.below(body, cst.AssignTarget)
    called = _called(body, evaluator) if isinstance(flag, cst.Attribute) else ()
    elsewhere = [target for function in called for target in evaluator.tree.below(function.body, cst.AssignTarget)]
    written = [*inside, *elsewhere, *_behind(statement, evaluator)]
    given = (pair for target in written for pair in _pairs(target, evaluator))
    return any(is_same(place, flag) and _is_turned(flag, made, value) for place, made in given)


def _pairs(target: cst.AssignTarget, evaluator: Evaluator) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What an assignment writes to, and what it writes there: ``first, shown = False, True``."""
    statement = evaluator.tree.parent(target)
    made = statement.value if isinstance(statement, cst.Assign) else None
    if isinstance(target.target, cst.Tuple) and isinstance(made, cst.Tuple):
        several = zip(target.target.elements, made.elements, strict=False)
        yield from ((place.value, each.value) for place, each in several)
    elif made is not None:
        yield target.target, made


def _is_turned(flag: cst.BaseExpression, made: cst.BaseExpression, value: bool) -> bool:
    """Whether a flag gets what it was not: ``False``, ``not flag``."""
    is_other = isinstance(made, cst.UnaryOperation) and isinstance(made.operator, cst.Not)
    if is_other and isinstance(made, cst.UnaryOperation):
        return is_same(made.expression, flag)
    return literal(made) is (not value)


def _called(body: cst.CSTNode, evaluator: Evaluator) -> list[cst.FunctionDef]:
    """The methods that a branch calls on the same object."""
    calls = (call for call in evaluator.tree.below(body, cst.Call) if isinstance(call.func, cst.Attribute))
    found = (evaluator.definitions.definition(call.func) for call in calls)
    return [function for function in found if isinstance(function, cst.FunctionDef)]


def _behind(statement: cst.If, evaluator: Evaluator) -> Iterator[cst.AssignTarget]:
    """The targets of the assignments behind an ``if`` in the same block, which always run."""
    block = evaluator.tree.parent(statement)
    lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    behind = lines[lines.index(statement) + 1 :] if statement in lines else []
    small = (each for line in behind if isinstance(line, cst.SimpleStatementLine) for each in line.body)
    yield from (target for each in small if isinstance(each, cst.Assign) for target in each.targets)


def _is_set_before_loop(test: cst.Name, value: bool, evaluator: Evaluator) -> bool:
    """Whether a variable has a value when a loop begins, and is never given it in the loop."""
    loop = evaluator.tree.enclosing(test, *LOOPS)
    definitions = evaluator.flow.definitions(test)
    if loop is None:
        return False
    before = [literal(b.part) for b in definitions if not evaluator.tree.within(b.node, loop)]
    inside = [b.part for b in definitions if evaluator.tree.within(b.node, loop)]
    is_kept_down = all(part is not None and _is_turned(test, part, value) for part in inside)
    return bool(before) and all(each is value for each in before) and is_kept_down


def _is_counted_down(test: cst.BaseExpression, body: cst.CSTNode, evaluator: Evaluator) -> bool:
    """Whether a branch lowers the attribute that it wants to be positive: ``if self.left > 0: self.left -= 1``."""
    left = test
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        is_more = isinstance(test.comparisons[0].operator, (cst.GreaterThan, cst.GreaterThanEqual))
        left = test.left if is_more else test
    lowered = (each for each in evaluator.tree.below(body, cst.AugAssign) if is_same(each.target, left))
    return isinstance(left, cst.Attribute) and any(isinstance(e.operator, cst.SubtractAssign) for e in lowered)


def _gets_attribute(test: cst.BaseExpression, body: cst.CSTNode, enters: bool, evaluator: Evaluator) -> bool:
    """Whether a branch makes the attribute that is missing: ``if not hasattr(self, "mean"): self.mean = value``."""
    asked, has = _flag(test, enters)
    is_question = isinstance(asked, cst.Call) and identifier(asked.func) == "hasattr" and len(asked.args) > 1
    if not is_question or has or not isinstance(asked, cst.Call):
        return False
    name = literal(asked.args[1].value)
    written = (target.target for target in evaluator.tree.below(body, cst.AssignTarget))
    return any(isinstance(each, cst.Attribute) and each.attr.value == name for each in written)
