"""Lists of an object that keep graphs for nothing: all that is read of them is detached first."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import COMPREHENSIONS
from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.retention.input_graphs import InputGraphs, assigned_places
from torchlint.semantics.retention.stores import Store, appended
from torchlint.semantics.values import Kind
from torchlint.syntax.canonical import is_same
from torchlint.syntax.remembered import remembered

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "stack", "vstack", "hstack"))
_KEEPS = frozenset(("append", "clear", "pop", "popleft", "maxlen", "remove"))
_ASKS = frozenset(("builtins.len", "builtins.bool"))


class DetachedReads:
    """Finds them in modules, whose forward pass is given what carries a graph."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._tree = evaluator.tree
        self._input_graphs = InputGraphs(evaluator)

    @cached_property
    def occur(self) -> bool:
        """Whether the file detaches anything."""
        return any(each.attr.value == "detach" for each in self._tree.nodes(cst.Attribute))

    @remembered
    def kept(self, call: cst.Call) -> Store | None:
        """Return what ``self.bank.append(features)`` keeps, where only ``past.detach()`` is read of ``self.bank``."""
        found = appended(call)
        held = found.variable if found is not None else None
        method = self._evaluator.definitions.enclosing_function(call)
        if (
            found is None
            or method is None
            or not isinstance(held, cst.Attribute)
            or not isinstance(held.value, cst.Name)
        ):
            return None
        owner = self._evaluator.definitions.receiver(held.value)
        if owner is None or self._evaluator.definitions.class_kind(owner) is not Kind.MODULE:
            return None
        if self._evaluator.gradients.disabled(call) or self._evaluator.gradients.left_open(call):
            return None
        carrying = tuple(value for value in found.values if self._input_graphs.follows(value, method))
        return Store(held, carrying, True) if carrying and self._is_only_read_detached(held, owner) else None

    def _is_only_read_detached(self, held: cst.Attribute, owner: cst.ClassDef) -> bool:
        written = assigned_places(owner, self._tree)
        same = [each for each in self._tree.below(owner, cst.Attribute) if is_same(each, held)]
        reads = [each for each in same if not any(each is target for target in written)]
        told = [self._is_detached(read) for read in reads]
        return True in told and False not in told

    def _is_detached(self, read: cst.Attribute) -> bool | None:
        """Whether what is read of a list is detached; None where nothing of what it holds is read."""
        parent = self._tree.parent(read)
        if isinstance(parent, cst.Attribute) and parent.attr.value in _KEEPS:
            kept = self._tree.parent(self._tree.parent(parent) or parent)
            return None if parent.attr.value in ("append", "clear", "maxlen") or isinstance(kept, cst.Expr) else False
        if isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is read:
            return self._is_each_detached(parent)
        if isinstance(parent, cst.Arg):
            call = self._tree.parent(parent)
            name = self._evaluator.names.qualified(call.func) if isinstance(call, cst.Call) else None
            if name in _ASKS:
                return None
            return name in _JOINS and isinstance(call, cst.Call) and self._is_cut(call)
        if isinstance(parent, cst.Subscript) and parent.value is read:
            return self._is_cut(parent)
        asks = isinstance(parent, (cst.If, cst.While, cst.BooleanOperation, cst.UnaryOperation, cst.IfExp))
        return None if asks else False

    def _is_each_detached(self, loop: cst.For | cst.CompFor) -> bool:
        """Whether a loop or comprehension detaches each thing that it takes, wherever it reads it."""
        if not isinstance(loop.target, cst.Name):
            return False
        around = self._tree.enclosing(loop, *COMPREHENSIONS) if isinstance(loop, cst.CompFor) else loop
        name = loop.target.value
        reads = [n for n in self._tree.below(around or loop, cst.Name) if n.value == name and n is not loop.target]
        return bool(reads) and all(map(self._is_cut, reads))

    def _is_cut(self, value: cst.CSTNode) -> bool:
        above = self._tree.parent(value)
        return isinstance(above, cst.Attribute) and above.value is value and above.attr.value in ("detach", "data")
