"""Moves under a test of where to compute: ``if use_cuda: x = x.cuda()``, ``x = x.cuda() if use_cuda else x``."""

from __future__ import annotations

import re
from typing import NamedTuple

import libcst as cst

from torchlint.syntax.calls import code, identifier
from torchlint.syntax.canonical import is_same
from torchlint.syntax.walk import Tree

_OF_DEVICES = re.compile(r"cuda|gpu|device", re.IGNORECASE)


class OptionalMove(NamedTuple):
    """The statement that moves a variable if a test holds."""

    statement: cst.Assign
    test: cst.BaseExpression

    @property
    def value(self) -> cst.BaseExpression:
        """The expression that moves it."""
        value = self.statement.value
        return value.body if isinstance(value, cst.IfExp) else value

    def device(self, there: str) -> str:
        """Return the code of the device on which the tensor is wanted, given that of the move."""
        if isinstance(self.test, cst.Attribute) and self.test.attr.value == "is_cuda":
            return f"{code(self.test.value)}.device"
        return f'{there} if {code(self.test)} else "cpu"' if there and "\n" not in code(self.test) else ""


def optional_move(statement: cst.CSTNode, target: cst.BaseExpression, tree: Tree) -> OptionalMove | None:
    """Return the move that a statement makes of a variable if there is a device to compute on, None if it does more."""
    if isinstance(statement, cst.Assign):
        value = statement.value if isinstance(statement.value, cst.IfExp) else None
        keeps = value is not None and is_same(target, value.orelse)
        return _of(statement, value.test, target, tree) if keeps and value is not None else None
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return None
    for line in statement.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
        if _mentions(small, target, tree):
            is_binding = isinstance(small, cst.Assign) and is_same(target, small.targets[0].target)
            return _of(small, statement.test, target, tree) if is_binding and isinstance(small, cst.Assign) else None
    return None


def _of(statement: cst.Assign, test: cst.BaseExpression, target: cst.BaseExpression, tree: Tree) -> OptionalMove | None:
    names = (identifier(node) for node in tree.descendants(test) if isinstance(node, (cst.Name, cst.Attribute)))
    asks = any(map(_OF_DEVICES.search, names)) and not _mentions(test, target, tree)
    return OptionalMove(statement, test) if asks else None


def _mentions(node: cst.CSTNode, target: cst.BaseExpression, tree: Tree) -> bool:
    return any(is_same(target, each) for each in tree.descendants(node))
