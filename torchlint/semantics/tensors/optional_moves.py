"""Moves under a test of where to compute: ``if use_cuda: x = x.cuda()``, ``x = x.cuda() if use_cuda else x``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.calls import code, identifier, literal
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_OF_DEVICES = re.compile(r"cuda|gpu|device", re.IGNORECASE)


class OptionalMove(NamedTuple):
    """The statement that moves a variable if a test holds."""

    statement: cst.Assign | cst.Return
    test: cst.BaseExpression
    value: cst.BaseExpression
    """The expression that moves it."""

    holds: bool = True
    """Whether it moves where the test holds, not where it fails."""

    def device(self, there: str) -> str:
        """Return the code of the device on which the tensor is wanted, given that of the move."""
        if not self.holds:
            return ""
        if isinstance(self.test, cst.Attribute) and self.test.attr.value == "is_cuda":
            return f"{code(self.test.value)}.device"
        return f'{there} if {code(self.test)} else "cpu"' if there and "\n" not in code(self.test) else ""


def optional_move(statement: cst.CSTNode, target: cst.BaseExpression, tree: Tree) -> OptionalMove | None:
    """Return the move that a statement makes of a variable if there is a device to compute on, None if it does more."""
    if isinstance(statement, (cst.Assign, cst.Return)):
        value = statement.value if isinstance(statement.value, cst.IfExp) else None
        if value is None or not (is_same(target, value.orelse) or is_same(target, value.body)):
            return None
        if isinstance(statement, cst.Assign) and not all(is_same(target, each.target) for each in statement.targets):
            return None  # the tensor on the host keeps its name
        holds = is_same(target, value.orelse)
        found = _of(statement, value.test, value.body if holds else value.orelse, target, tree)
        return found._replace(holds=holds) if found is not None else None
    if not isinstance(statement, cst.If) or not _only_hands_back(statement.orelse, target):
        return None
    for line in statement.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
        if _mentions(small, target, tree):
            moved = _moved(small, target, tree)
            if moved is None or not isinstance(small, (cst.Assign, cst.Return)):
                return None
            return _of(small, statement.test, moved, target, tree)
        if isinstance(target, cst.Attribute) and _runs(small, target.value, tree):
            return None
    return None


def is_optional(call: cst.Call, tree: Tree) -> bool:
    """Return whether a call only runs if a test of where to compute holds: ``if use_cuda: model.cuda()``."""
    child: cst.CSTNode = call
    for ancestor in tree.ancestors(call):
        test = ancestor.test if isinstance(ancestor, (cst.If, cst.IfExp)) else None
        if test is not None and child is not test and any(map(_OF_DEVICES.search, _words(test, tree))):
            return True
        child = ancestor
    return False


def _runs(node: cst.CSTNode, owner: cst.BaseExpression, tree: Tree) -> bool:
    """Whether a statement calls a method of the owner of an attribute, which may use it, or hands the owner on."""
    calls = [each for each in tree.descendants(node) if isinstance(each, cst.Call)]
    methods = (call.func.value for call in calls if isinstance(call.func, cst.Attribute))
    return any(is_same(owner, each) for each in (*methods, *(a.value for call in calls for a in call.args)))


def _only_hands_back(orelse: cst.If | cst.Else | None, target: cst.BaseExpression) -> bool:
    """Whether nothing happens where there is no device, or the tensor is returned as it is."""
    if not isinstance(orelse, cst.Else):
        return orelse is None
    line = orelse.body.body[0]
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
    is_alone = len(orelse.body.body) == 1
    return is_alone and isinstance(small, cst.Return) and small.value is not None and is_same(target, small.value)


def _moved(statement: cst.CSTNode, target: cst.BaseExpression, tree: Tree) -> cst.BaseExpression | None:
    """Return what a statement gives a variable, alone or as one of several, or returns."""
    if isinstance(statement, cst.Return):
        return statement.value
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    bound = statement.targets[0].target
    if isinstance(bound, cst.Tuple) and isinstance(statement.value, cst.Tuple):
        pairs = list(zip(bound.elements, statement.value.elements, strict=False))
        others = [given for each, given in pairs if not is_same(target, each.value)]
        if any(_mentions(other, target, tree) for other in others):
            return None
        return next((given.value for each, given in pairs if is_same(target, each.value)), None)
    return statement.value if is_same(target, bound) else None


def _of(
    statement: cst.Assign | cst.Return,
    test: cst.BaseExpression,
    moved: cst.BaseExpression,
    target: cst.BaseExpression,
    tree: Tree,
) -> OptionalMove | None:
    asks = any(map(_OF_DEVICES.search, _words(test, tree))) and not _mentions(test, target, tree)
    return OptionalMove(statement, test, moved) if asks else None


def _words(test: cst.BaseExpression, tree: Tree) -> Iterator[str]:
    """Yield the names that a test reads, and the strings that it compares them with: ``accelerator == "gpu"``."""
    for node in tree.descendants(test):
        if isinstance(node, (cst.Name, cst.Attribute)):
            yield identifier(node)
        elif isinstance(node, cst.SimpleString):
            yield str(literal(node))


def _mentions(node: cst.CSTNode, target: cst.BaseExpression, tree: Tree) -> bool:
    return any(is_same(target, each) for each in tree.descendants(node))
