"""Parsed text and its nodes, for tests that need no rules."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import libcst as cst

from torchlint.edits.locate import Locator
from torchlint.edits.operations import Edit
from torchlint.edits.render import render
from torchlint.edits.text import apply_edits
from torchlint.syntax.walk import Tree, walk


class Code:
    """A text with its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.module = cst.parse_module(text)
        self.tree: Tree = walk(self.module)
        self.parsed: Any = SimpleNamespace(source=SimpleNamespace(text=text, path="code.py"), module=self.module)
        self.locator = Locator(self.parsed, self.tree.parent)

    def code(self, node: cst.CSTNode) -> str:
        """Return the text of a node, as the locator places it."""
        place = self.locator.full(node)
        return self.text[place.start : place.end].strip()

    def call(self, name: str, index: int = 0) -> cst.Call:
        """Return a call of a function or method by the last part of its name."""
        found = [node for node in self.tree.nodes(cst.Call) if _last_name(node.func) == name]
        return found[index]

    def statement(self, start: str) -> Any:
        """Return the first small or compound statement whose text begins so."""
        for node in self.tree.descendants(self.module):
            if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                place = self.locator.syntactic(node)
                if self.text.startswith(start, place.start):
                    return node
        raise LookupError(start)

    def edited(self, *edits: Edit) -> str:
        """Return the text with the edits applied."""
        return apply_edits(self.text, render(self.locator, edits))


def _last_name(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


def edited(text: str, make: Callable[[Code], list[Edit]]) -> str:
    """Return the text after the edits that a function makes of its nodes."""
    code = Code(text)
    return code.edited(*make(code))
