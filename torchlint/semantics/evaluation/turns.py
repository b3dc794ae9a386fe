"""Routines that train or evaluate as they are told: ``if split == "train": loss.backward()``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.semantics.binding.scopes import BindingKind
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.told_modes import mode_set
from torchlint.semantics.evaluation.gradient_uses import GradientUses
from torchlint.semantics.evaluation.hidden_gradients import HiddenGradients
from torchlint.semantics.training.phases import evaluates
from torchlint.semantics.training.training_code import TrainingCode
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, is_none, method_call
from torchlint.syntax.canonical import canonical

_CHOICES = (cst.If, cst.IfExp)
_ENOUGH_CALLERS = 2
"""Of a routine that is told by an argument: one to train, one to evaluate."""


class Turns:
    """Finds the test by which such a routine tells training from evaluation."""

    def __init__(self, evaluator: Evaluator, training_code: TrainingCode, gradient_uses: GradientUses) -> None:
        self._evaluator = evaluator
        self._hidden = HiddenGradients(evaluator, gradient_uses)
        self._tree = evaluator.tree
        self._training_code = training_code
        self._tests: dict[int, cst.BaseExpression | None] = {}

    def test(self, call: cst.Call, frame: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the test on which a routine trains, if it runs a call whether it trains or evaluates; None otherwise.

        All that trains in it stands behind the test, a model is put into evaluation mode where it fails, and no caller
        switches gradients off.
        """
        test = self._test_of(frame)
        if test is None or self._is_chosen(call, frame) or not self._is_bound_before(test, call):
            return None
        return test

    def exist(self, frame: cst.CSTNode) -> bool:
        """Return whether a routine has such a test."""
        return self._test_of(frame) is not None

    def _test_of(self, frame: cst.CSTNode) -> cst.BaseExpression | None:
        if id(frame) not in self._tests:
            self._tests[id(frame)] = self._find(frame)
        return self._tests[id(frame)]

    def _find(self, frame: cst.CSTNode) -> cst.BaseExpression | None:
        trains = self._training_code.trains
        trained = [(test, branch) for test, branch in self._branches(frame) if any(map(trains, branch))]
        branches = [statement for _, branch in trained for statement in branch]
        if not trained or self._trains_elsewhere(frame, branches) or self._differentiates_elsewhere(frame, branches):
            return None
        subjects = {self._subject(test) for test, _ in trained}
        if len(subjects) != 1 or "" in subjects or not self._sets_mode(frame, subjects):
            return None
        test = trained[0][0]
        return test if self._is_run_both_ways(test, frame) else None

    def _branches(self, frame: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, list[cst.CSTNode]]]:
        """What a routine runs only where it trains, with the tests: branches, and what follows ``continue``."""
        routine = frame if isinstance(frame, cst.FunctionDef) else None
        for branch in self._tree.below(frame, cst.If):
            if self._function(branch) is not routine:
                continue
            told = _telling(branch.test)
            if told is not None:
                yield told, [branch.body]
            leaves = told is None and _leaves_training(branch) and _trains(branch.test, False)
            if leaves and isinstance(branch.test, cst.UnaryOperation):
                yield branch.test.expression, list(self._evaluator.flow.following(branch))

    def _trains_elsewhere(self, frame: cst.CSTNode, branches: list[cst.CSTNode]) -> bool:
        calls = (call for call in self._tree.below(frame, cst.Call) if self._training_code.takes_step(call))
        return any(not any(self._tree.within(call, branch) for branch in branches) for call in calls)

    def _differentiates_elsewhere(self, frame: cst.CSTNode, branches: list[cst.CSTNode]) -> bool:
        """Whether a routine wants gradients where it evaluates, too, or freezes parameters as it is told."""
        if any(node.attr.value.startswith("requires_grad") for node in self._tree.below(frame, cst.Attribute)):
            return True
        calls = self._tree.below(frame, cst.Call)
        return self._hidden.below(c for c in calls if not any(self._tree.within(c, branch) for branch in branches))

    def _is_bound_before(self, test: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether all that a test reads has its value where a call is made."""
        place = self._tree.order(call)
        names = [test] if isinstance(test, cst.Name) else self._tree.below(test, cst.Name)
        bound = [binding.node for name in names for binding in self._evaluator.flow.definitions(name)]
        return all(self._tree.order(node) < place for node in bound)

    def _subject(self, test: cst.BaseExpression) -> str:
        """What a test asks: the text of ``split`` in ``split == "train"``; "" if it asks several things."""
        if isinstance(test, cst.UnaryOperation):
            return self._subject(test.expression)
        if isinstance(test, cst.Comparison):
            return canonical(test.left)
        if isinstance(test, cst.Name):
            bindings = self._evaluator.flow.definitions(test)
            given = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGNMENT else None
            return self._subject(given) if isinstance(given, (cst.Comparison, cst.UnaryOperation)) else test.value
        return canonical(test) if isinstance(test, (cst.Attribute, cst.Subscript)) else ""

    def _sets_mode(self, frame: cst.CSTNode, subjects: set[str]) -> bool:
        """Whether a routine puts a model into the mode that the subject asks for."""
        for call in self._tree.below(frame, cst.Call):
            mode = method_call(call, "train", "eval")
            if mode is None or self._evaluator.value(mode.value).kind is not Kind.MODULE:
                continue
            told = call.args[0].value if len(call.args) == 1 else None
            if told is not None and self._subject(told) in subjects:
                return True
            if mode_set(call) == "eval" and self._is_other_branch(call, frame, subjects):
                return True
        return False

    def _is_other_branch(self, call: cst.Call, frame: cst.CSTNode, subjects: set[str]) -> bool:
        """Whether a call runs only where a test of the subject says that nothing is trained."""
        child: cst.CSTNode = call
        for ancestor in self._tree.ancestors(call):
            if ancestor is frame:
                return False
            if (
                isinstance(ancestor, _CHOICES)
                and child is not ancestor.test
                and self._subject(ancestor.test) in subjects
            ):
                return _trains(ancestor.test, child is not ancestor.body)
            child = ancestor
        return False

    def _is_chosen(self, call: cst.Call, frame: cst.CSTNode) -> bool:
        """Whether a call stands in a branch that only trains, or only evaluates."""
        child: cst.CSTNode = call
        for ancestor in self._tree.ancestors(call):
            if ancestor is frame:
                return False
            if isinstance(ancestor, _CHOICES) and child is not ancestor.test:
                taken = child is ancestor.body
                if _trains(ancestor.test, taken) or _trains(ancestor.test, not taken) or _telling(ancestor.test):
                    return True
            if isinstance(ancestor, cst.IndentedBlock) and any(map(_leaves_training, _before(ancestor, child))):
                return True
            child = ancestor
        return False

    def _is_run_both_ways(self, test: cst.BaseExpression, frame: cst.CSTNode) -> bool:
        """Whether a routine goes through both stages itself, or is called for both with gradients on."""
        if any(self._binds_subject(loop, test) for loop in self._tree.below(frame, cst.For)):
            return True
        callers = self._evaluator.callers(frame) if isinstance(frame, cst.FunctionDef) else []
        off = self._evaluator.gradients.disabled
        return len(callers) >= _ENOUGH_CALLERS and not any(map(off, callers))

    def _binds_subject(self, loop: cst.For, test: cst.BaseExpression) -> bool:
        subject = self._subject(test)
        return any(name.value == subject for name in self._tree.below(loop, cst.Name) if self._is_target(name, loop))

    def _is_target(self, name: cst.Name, loop: cst.For) -> bool:
        return name is loop.target or self._tree.within(name, loop.target)

    def _function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        return self._evaluator.definitions.enclosing_function(node)


def _telling(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The part of a test without which the branch is not taken, and that tells to train."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _telling(test.left) or _telling(test.right)
    return test if _trains(test, True) else None


def _before(block: cst.IndentedBlock, statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for line in block.body:
        if line is statement:
            return
        yield line


def _leaves_training(statement: cst.CSTNode) -> bool:
    """Whether what follows a statement only trains, or only evaluates: ``if not is_train: continue``."""
    if not isinstance(statement, cst.If) or statement.orelse is not None or not ends_in_jump(statement.body):
        return False
    return _trains(statement.test, False) or _trains(statement.test, True)


def _trains(test: cst.BaseExpression, taken: bool) -> bool:
    """Whether a branch of a test trains: ``training``, ``split == "train"``, ``optimizer is not None``."""
    if evaluates(test, not taken):
        return True
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and "optim" in identifier(test.left).lower():
        operator, other = test.comparisons[0].operator, test.comparisons[0].comparator
        return is_none(other) and isinstance(operator, cst.IsNot if taken else cst.Is)
    return False
