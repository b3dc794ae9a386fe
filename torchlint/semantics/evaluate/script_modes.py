"""Gradients that a script switches off at its top level, and which of its code runs then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.binding.definitions import Definitions
from torchlint.semantics.binding.flow import last_statement
from torchlint.semantics.binding.qualified_names import Names
from torchlint.syntax.calls import bind, literal
from torchlint.syntax.statements import is_main_guard
from torchlint.syntax.walk import Tree

if TYPE_CHECKING:
    from torchlint.semantics.evaluate.evaluator import Evaluator

SETTERS = ("torch.set_grad_enabled", "torch._C._set_grad_enabled")
_EXITS = frozenset(("sys.exit", "builtins.exit", "builtins.quit", "os._exit"))
_MAX_DEPTH = 4
"""Through how many functions calls are followed to the top level."""


class ScriptModes:
    """Follows the switches of a script."""

    def __init__(self, tree: Tree, names: Names, definitions: Definitions, evaluator: Evaluator) -> None:
        self._tree = tree
        self._names = names
        self._definitions = definitions
        self._evaluator = evaluator

    def restorers(self) -> list[cst.Call]:
        """Return the calls that may switch gradients on again, for good: ``set_grad_enabled(before)``."""
        named = (c for c in self._tree.calls_named("set_grad_enabled") if self._names.qualified(c.func) in SETTERS)
        calls = [call for call in named if not isinstance(self._tree.parent(call), (cst.WithItem, cst.Decorator))]
        return [call for call in calls if literal(bind(call.args, ("mode",)).get("mode")) is not False]

    def stays_off(self, setter: cst.Call) -> bool:
        """Return whether a switch at the top level holds for what other files call, and what runs at the end.

        Nothing turns it back later, wherever it is turned, and its branch does not end the program.
        """
        branches = list(self._branches(setter))
        if any(self._ends_program(branch) for branch in branches):
            return False
        later = (c for c in self.restorers() if self._tree.order(c) > self._tree.order(setter))
        own = (c for c in later if self._definitions.enclosing_function(c) is None)
        return not any(all(any(b is each for each in branches) for b in self._branches(c)) for c in own)

    def may_hold(self, setter: cst.Call, node: cst.CSTNode) -> bool:
        """Return whether a switch at the top level may hold where a node runs, or something of another file runs it."""
        here = self._definitions.enclosing_function(node)
        if here is None:
            return self._precedes(setter, node) and self.stays_off(setter)
        places = self._places(here, 0)
        if places and not any(self._precedes(setter, place) for place in places):
            return False
        return self.stays_off(setter)

    def _places(self, function: cst.FunctionDef, depth: int) -> list[cst.CSTNode]:
        """The calls at the top level that run a function in the end; none if any of its callers is unknown."""
        calls = [call for call in self._evaluator.callers(function) if not self._tree.within(call, function)]
        found: list[cst.CSTNode] = []
        for call in calls:
            around = self._definitions.enclosing_function(call)
            above = [call] if around is None else self._places(around, depth + 1) if depth < _MAX_DEPTH else []
            if not above:
                return []
            found += above
        return found

    def _precedes(self, setter: cst.Call, place: cst.CSTNode) -> bool:
        """Whether a switch comes before a place at the top level, and stands in no other branch of the same test."""
        if self._tree.order(place) < self._tree.order(setter):
            return False
        around = [a for a in self._tree.ancestors(setter) if isinstance(a, cst.If) and self._tree.within(place, a)]
        blocks = (block for block in self._branches(setter) if self._tree.parent(block) in around)
        return all(self._tree.within(place, block) for block in blocks)

    def _branches(self, node: cst.CSTNode) -> Iterator[cst.IndentedBlock]:
        """The blocks around a node but for that which is run if the file is a program."""
        for ancestor in self._tree.ancestors(node):
            above = self._tree.parent(ancestor)
            is_main = isinstance(above, cst.If) and is_main_guard(above)
            if isinstance(ancestor, cst.IndentedBlock) and not is_main:
                yield ancestor

    def _ends_program(self, block: cst.IndentedBlock) -> bool:
        last = last_statement(block)
        if isinstance(last, cst.Raise):
            return True
        called = last.value.func if isinstance(last, cst.Expr) and isinstance(last.value, cst.Call) else None
        return called is not None and self._names.qualified(called) in _EXITS
