"""How blocks are left early: ``if step % k: continue`` keeps what follows from running each time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.binding.flow import LOOPS, ends_in_jump
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.heat.device_tests import leaves_host
from torchlint.semantics.heat.periodic import counts_on_after
from torchlint.semantics.heat.seen_keys import is_new_key
from torchlint.semantics.heat.spent_tests import is_spent_by_rest
from torchlint.syntax.walk import Tree


class Exits(NamedTuple):
    """How a block is left early."""

    tests: tuple[tuple[cst.BaseExpression, bool, int], ...]
    """Each test that decides whether what follows runs, what it is then, and its place."""

    first_pause: int
    """The place from which the block runs once in an interval only, after all others where there is none."""

    last_break: int
    """The place of the last ``break`` in the block itself, in a loop also ``return`` and ``raise``; -1 if none."""


def exits_of(block: cst.IndentedBlock | cst.Module, evaluator: Evaluator) -> Exits:
    """Return how a block is left early."""
    tree = evaluator.tree
    left = [(place, line) for place, line in enumerate(block.body) if _leaves(line)]
    tests = [(line.test, False, tree.order(line)) for _, line in left if isinstance(line, cst.If)]
    lines = [line for line in block.body if isinstance(line, cst.SimpleStatementLine)]
    asserted = ((line.body[0].test, tree.order(line)) for line in lines if isinstance(line.body[0], cst.Assert))
    tests += ((test, True, place) for test, place in asserted if leaves_host(test, True))
    pauses = (
        tree.order(line)
        for place, line in left
        if isinstance(line, cst.If) and _pauses(line, block.body[place + 1 :], evaluator)
    )
    ends = (cst.Break, cst.Return, cst.Raise) if isinstance(tree.parent(block), LOOPS) else cst.Break
    breaks = (tree.order(line) for line in lines if isinstance(line.body[-1], ends))
    in_order = tuple(sorted(tests, key=lambda one: one[2]))
    return Exits(in_order, min(pauses, default=sys.maxsize), max(breaks, default=-1))


def goes_on(line: cst.CSTNode, tree: Tree) -> bool:
    """Return whether a statement of a loop's block starts the next pass where it works out: ``try: ...; continue``.

    Then the jump at the end of the block is for what does not; a ``continue`` of a handler is for that itself.
    """
    if not isinstance(line, (cst.Try, cst.If)):
        return False
    bodies = [line.body, *([line.orelse] if line.orelse is not None else ())]
    jumps = [jump for body in bodies for jump in tree.below(body, cst.Continue)]
    around = (tree.enclosing(jump, cst.ExceptHandler, *LOOPS) for jump in jumps)
    return any(node is None or not tree.within(node, line) for node in around)


def _pauses(line: cst.If, rest: Sequence[cst.CSTNode], evaluator: Evaluator) -> bool:
    is_once = counts_on_after(line, rest, evaluator.tree) or is_new_key(line.test, False, rest, evaluator)
    return is_once or is_spent_by_rest(line, rest, evaluator)


def _leaves(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.If) and line.orelse is None and ends_in_jump(line.body)
