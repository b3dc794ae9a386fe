"""Branches in which a loop or function takes its training steps: what stands there runs in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, ends_in_jump
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluate.gradient_scalers import scales_and_steps
from torchlint.semantics.heat.guards import Guard, Guards
from torchlint.semantics.heat.whole_fits import is_whole_fit
from torchlint.semantics.values import Kind
from torchlint.syntax.calls import identifier, literal, method_call

_PASSES = ("backward", "manual_backward")
_ADDS_UP = ("sum", "mean", "squeeze")
_RARE = 100
"""After so many passes of a loop a step is seldom enough for what is read in it."""
_TAKING = (Kind.OPTIMIZER, Kind.SCALER)


class Accumulation(NamedTuple):
    """A test that lets an optimizer step after every few backward passes only."""

    test: cst.If
    begins: int
    """The first and the last place of what runs only where it lets."""
    ends: int


class TrainingBlocks:
    """Finds branches that run in every training step, although not on every pass of their loop."""

    def __init__(
        self, evaluator: Evaluator, guards: Guards, own_calls: Callable[[cst.CSTNode], list[cst.Call]]
    ) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._guards = guards
        self._own_calls = own_calls
        self._blocks: dict[int, cst.CSTNode | None] = {}
        self._accumulations: dict[int, Accumulation | None] = {}

    def is_step(self, call: cst.Call) -> bool:
        """Return whether a call is a backward pass, or lets an optimizer take a step."""
        if self._is_pass(call) or scales_and_steps(call, self._evaluator):
            return True
        return self._moves(call, "step") and not is_whole_fit(call, self._evaluator)

    def _is_pass(self, call: cst.Call) -> bool:
        function = call.func
        if not isinstance(function, cst.Attribute) or function.attr.value not in _PASSES:
            return False
        if self._is_score(function.value):
            return False
        return not isinstance(function.value, cst.Call) or identifier(function.value.func) != "super"

    def _is_score(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value is a score of some classes, which is differentiated to explain it: ``logits[0, label]``.

        ``logits.gather(1, labels).sum()``, also by a variable
        """
        while (method := method_call(value, *_ADDS_UP)) is not None:
            value = method.value
        if isinstance(value, cst.Name) and depth == 0:
            made = self._evaluator.flow.definitions(value)
            parts = [binding.part for binding in made]
            return bool(parts) and all(part is not None and self._is_score(part, depth + 1) for part in parts)
        if isinstance(value, cst.Subscript):
            return len(value.slice) > 1
        return method_call(value, "gather") is not None

    def _moves(self, call: cst.Call, *names: str) -> bool:
        function = call.func
        if not isinstance(function, cst.Attribute) or function.attr.value not in names:
            return False
        return self._evaluator.value(function.value).kind in _TAKING

    def guard(self, node: cst.CSTNode, root: cst.CSTNode, besides: frozenset[Guard]) -> Guard | None:
        """Return why a node does not run in every training step of a loop or function, None if it does."""
        block = self._block(root) if isinstance(root, LOOPS) else None
        if block is not None and self._tree.within(node, block):
            return self._guards.guard(node, block, besides)
        found = self._guards.guard(node, root, besides)
        if found is Guard.PERIODIC and self.is_update(node, root):
            accumulation = self._accumulation(root)
            return self._guards.guard(node, root, besides, accumulation.test if accumulation is not None else None)
        return found

    def is_update(self, node: cst.CSTNode, root: cst.CSTNode) -> bool:
        """Return whether a node runs where gradients of several passes are applied, with the optimizer's step."""
        accumulation = self._accumulation(root)
        return accumulation is not None and accumulation.begins <= self._tree.order(node) <= accumulation.ends

    def _block(self, loop: cst.For | cst.While) -> cst.CSTNode | None:
        """The branch in which a loop takes all of its training steps, each of which runs all that stands there.

        An agent that learns at every fourth step of its environment learns in every training step.
        """
        if id(loop) not in self._blocks:
            steps = [call for call in self._tree.below(loop.body, cst.Call) if self.is_step(call)]
            branches = [a for a in self._tree.ancestors(steps[0]) if self._tree.within(a, loop.body)] if steps else []
            tests = ((branch, self._tree.parent(branch)) for branch in branches)
            bodies = [b for b, test in tests if isinstance(test, cst.If) and b is test.body and not _is_rare(test.test)]
            around = (body for body in bodies if all(self._tree.within(step, body) for step in steps))
            self._blocks[id(loop)] = next(around, None)
        return self._blocks[id(loop)]

    def _accumulation(self, root: cst.CSTNode) -> Accumulation | None:
        """The test under which a loop or function applies the gradients that each of its passes adds to."""
        if id(root) not in self._accumulations:
            self._accumulations[id(root)] = next(self._find_accumulation(root), None)
        return self._accumulations[id(root)]

    def _find_accumulation(self, root: cst.CSTNode) -> Iterator[Accumulation]:
        calls, order = self._own_calls(root), self._tree.order
        passes = [order(call) for call in calls if self._is_pass(call)]
        updates = [call for call in calls if passes and self._moves(call, "step")]
        for found in self._tests_around(updates[0], root) if updates else ():
            inside = range(found.begins, found.ends + 1)
            holds_updates = all(order(update) in inside for update in updates)
            if holds_updates and not any(place in inside for place in passes) and self._may_be_one(found.test.test):
                yield found

    def _may_be_one(self, test: cst.BaseExpression) -> bool:
        """Whether the gradients of a single pass may be applied at once, as far as the file says."""
        told = self._guards.defaults.of_option
        return any(
            isinstance(part.operator, cst.Modulo) and told(part.right) in (None, 1)
            for expression in (test, *self._bound(test))
            for part in self._tree.below(expression, cst.BinaryOperation)
        )

    def _bound(self, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield what is assigned to the variables and flags of a test: ``due = (i + 1) % every == 0``."""
        for name in self._tree.below(test, cst.Name):
            yield from (b.value for b in self._evaluator.flow.definitions(name) if b.value is not None and not b.path)
        for flag in self._tree.below(test, cst.Attribute):
            yield from (reason.test for value in (True, False) for reason in self._guards.flags.reasons(flag, value))

    def _tests_around(self, update: cst.Call, root: cst.CSTNode) -> Iterator[Accumulation]:
        """Yield the periodic tests without which an update would run in each pass, the innermost first."""
        child: cst.CSTNode = update
        for ancestor in self._tree.ancestors(update):
            if ancestor is root:
                return
            if isinstance(ancestor, cst.If) and child is ancestor.body and self._is_periodic(ancestor.test, True):
                yield self._region(ancestor, ancestor.body.body[0], ancestor.body)
            elif isinstance(ancestor, cst.IndentedBlock):
                for place, line in enumerate(ancestor.body[:-1]):
                    if line is child:
                        break
                    leaves = isinstance(line, cst.If) and line.orelse is None and ends_in_jump(line.body)
                    if isinstance(line, cst.If) and leaves and self._is_periodic(line.test, False):
                        yield self._region(line, ancestor.body[place + 1], ancestor)
            child = ancestor

    def _is_periodic(self, test: cst.BaseExpression, taken: bool) -> bool:
        return self._guards.classify(test, taken) is Guard.PERIODIC

    def _region(self, test: cst.If, first: cst.CSTNode, block: cst.CSTNode) -> Accumulation:
        return Accumulation(test, self._tree.order(first), self._tree.last(block))


def _is_rare(test: cst.BaseExpression) -> bool:
    """Return whether a test is for one pass of hundreds: ``t % 1000 == 999``, ``len(pool) == 500``."""
    part = test.left if isinstance(test, cst.Comparison) else test
    number = part.right if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Modulo) else None
    if number is None and isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, cst.Equal):
        number = test.comparisons[0].comparator
    every = literal(number)
    return isinstance(every, int) and every >= _RARE
