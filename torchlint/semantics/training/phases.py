"""Branches of a loop that trains and evaluates by turns: which of the two a branch belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.binding.flow import ends_in_jump
from torchlint.syntax.calls import identifier, literal
from torchlint.syntax.walk import Tree

Told: TypeAlias = Callable[[cst.BaseExpression, bool], bool]
"""Whether code that runs if a test holds (or if it fails) is of the phase that is asked for."""

_TRAINS = re.compile(r"^(is_|do_|in_)?(train|training)(_mode|_phase|_stage)?$", re.IGNORECASE)
_EVALUATES = re.compile(
    r"^(is_|do_|in_)?(test|testing|val|valid|validate|validation|validating|eval|evaluate|evaluation|dev|predict|"
    r"predicting|prediction|infer|inference)(_mode|_phase|_stage)?$",
    re.IGNORECASE,
)
# Those of them that are a flag by themselves: `test`, `val` and `dev` are names of much else.
_FLAG = re.compile(
    r"^((is|do|in)_)?(testing|validate|validating|eval|evaluate|evaluating|predicting|inference)(_mode|_phase|_stage)?$|"
    r"^(is|do|in)_(test|val|valid|dev)(_mode|_phase|_stage)?$",
    re.IGNORECASE,
)


def in_evaluation(node: cst.CSTNode, root: cst.CSTNode, tree: Tree) -> bool:
    """Return whether a node below ``root`` runs while evaluating only: in such a branch, or where training has left."""
    return _runs_only(node, root, tree, evaluates)


def in_training(node: cst.CSTNode, root: cst.CSTNode, tree: Tree) -> bool:
    """Return whether a node below ``root`` runs while a module trains only: ``if self.training:``."""
    return _runs_only(node, root, tree, _asks_for_training)


def _runs_only(node: cst.CSTNode, root: cst.CSTNode, tree: Tree, told: Told) -> bool:
    """Whether a branch around a node, or what leaves the block before it, tells in which phase it runs."""
    child = node
    for ancestor in tree.ancestors(node):
        if ancestor is root:
            return False
        if (
            isinstance(ancestor, (cst.If, cst.IfExp))
            and child is not ancestor.test
            and told(ancestor.test, child is ancestor.body)
        ):
            return True
        if isinstance(ancestor, cst.IndentedBlock) and _is_left_by_others(ancestor, child, told):
            return True
        child = ancestor
    return False


def _asks_for_training(test: cst.BaseExpression, holds: bool) -> bool:
    """Whether code that runs if a test holds (or if it fails) trains: ``module.training``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _asks_for_training(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And) is holds:
        return any(_asks_for_training(side, holds) for side in (test.left, test.right))
    return holds and isinstance(test, cst.Attribute) and test.attr.value == "training"


def _is_left_by_others(block: cst.IndentedBlock, statement: cst.CSTNode, told: Told) -> bool:
    """Whether the other phase leaves a block before a statement, ``if self.training: return``, or may not enter it."""
    for earlier in block.body:
        if earlier is statement:
            return False
        asserted = earlier.body[0] if isinstance(earlier, cst.SimpleStatementLine) else None
        if isinstance(asserted, cst.Assert) and told(asserted.test, True):
            return True
        leaves = isinstance(earlier, cst.If) and earlier.orelse is None and ends_in_jump(earlier.body)
        if leaves and isinstance(earlier, cst.If) and told(earlier.test, False):
            return True
    return False


def evaluates(test: cst.BaseExpression, holds: bool) -> bool:
    """Whether code that runs if a test holds (or if it fails) does not train."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return evaluates(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation):
        sides = (test.left, test.right)
        conjunction = isinstance(test.operator, cst.And)
        return conjunction is holds and any(evaluates(side, holds) for side in sides)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        operator, other = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, (cst.In, cst.NotIn)) and isinstance(other, (cst.Tuple, cst.List, cst.Set)):
            listed = [_name(element.value) for element in other.elements]
            return isinstance(operator, cst.In) is holds and bool(listed) and all(map(_EVALUATES.match, listed))
        named = _name(other)
        if not isinstance(operator, (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot)):
            return False
        same = isinstance(operator, (cst.Equal, cst.Is)) is holds
        return bool(_EVALUATES.match(named)) if same else bool(_TRAINS.match(named))
    named = _name(test)
    return bool(_FLAG.match(named)) if holds else bool(_TRAINS.match(named))


def _name(expression: cst.BaseExpression) -> str:
    """The last part of ``Stage.TEST``, or the text itself."""
    text = literal(expression)
    return text if isinstance(text, str) else identifier(expression)
