"""What becomes of what an object keeps: whether anything that reads it can still use its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.evaluate.evaluator import Evaluator
from torchlint.semantics.evaluation.fates import Fate, Fates, names_bound
from torchlint.semantics.tables.container_methods import ADDS_TO_LIST, APPENDS, TAKES_OUT
from torchlint.syntax.calls import identifier, method_call

_MOST_CALLERS = 3
"""Through how many variables and calls a value is followed when it leaves a function or enters another attribute."""

_SAME_ITEMS = ("enumerate", "list", "tuple", "reversed")
_COPIES = frozenset(f"builtins.{name}" for name in ("list", "tuple", "sorted", "reversed", "iter", "next", "dict"))
_CHANGES = (*TAKES_OUT, *ADDS_TO_LIST)
# What hands on something that is there already, with the graph that it has.
PICKS = frozenset((*_CHANGES, "items", "values", "keys", "get", "copy", "unbind", "split", "chunk", "setdefault"))
_OF_GRAPH = frozenset(("grad", "grad_fn", "retain_grad", "register_hook", "requires_grad_", "backward"))
_NUMBERED = "builtins.enumerate"
_ASKS = (cst.If, cst.While, cst.Assert)


class Held(NamedTuple):
    """What becomes of what an attribute holds."""

    fate: Fate
    """The worst, of all places that read it."""

    is_cut: bool
    """Whether all that is read of it is detached: its graph is known of."""


class KeptFates(Fates):
    """Follows it through loops, copies, the methods that hand it out, and other attributes that take it."""

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator)
        self._followed: set[int] = set()
        self._cuts = 0
        self._asked: tuple[str, int | None] = ("", None)

    def held(self, attribute: cst.Attribute, part: int | None = None) -> Held:
        """Return what becomes of an attribute of ``self`` wherever the file reads it.

        ``part``: the place in the tuples that it holds of what is asked for.
        """
        reads, worst, cut = self.reads(attribute), Fate.DROPPED, []
        self._asked = (attribute.attr.value, part)
        self._followed = set(map(id, reads))
        for read in reads:
            before = self._cuts
            fate = self.of(read)
            worst = max(worst, fate)
            if fate is not Fate.DROPPED:
                cut.append(self._cuts > before)
        return Held(worst, bool(cut) and all(cut))

    def reads(self, attribute: cst.Attribute) -> list[cst.Attribute]:
        """Return where the file reads an attribute of ``self``: in its class, those of the family, through others."""
        same = self._tree.attributes_named(attribute.attr.value)
        return [a for a in same if self._may_be(a, attribute) and not self._is_written(a) and not self._is_called(a)]

    def _settled(self, parent: cst.CSTNode, node: cst.CSTNode, depth: int) -> Fate | None:
        if self._computes(parent, node) and self._evaluator.gradients.disabled(parent):
            return Fate.VALUES
        if isinstance(parent, cst.Return):
            return self._of_callers(parent, depth)
        if isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node:
            return self._of_names(parent, list(_taken(parent, self._part(parent.iter))), depth)
        if isinstance(parent, (*_ASKS, cst.IfExp)) and (not isinstance(parent, cst.IfExp) or parent.test is node):
            return Fate.DROPPED
        if isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not):
            return Fate.DROPPED
        if isinstance(parent, cst.Attribute) and parent.attr.value in _CHANGES:
            called = self._tree.parent(parent)
            return Fate.DROPPED if called is not None and isinstance(self._tree.parent(called), cst.Expr) else None
        if isinstance(parent, cst.Assign) and parent.value is node and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, cst.Attribute):
                return self._of_attribute_bound(target, depth)
            part = self._part(node.args[0].value) if isinstance(node, cst.Call) and _unzips(node) else None
            if part is not None and isinstance(target, cst.Tuple) and part < len(target.elements):
                return self._of_names(parent, list(names_bound(target.elements[part].value)), depth)
            return self._of_bound(parent, node, depth)
        moved = method_call(parent, *APPENDS) if isinstance(node, cst.Arg) else None
        if moved is not None and isinstance(held := _holder(moved.value), cst.Attribute):
            return self._of_attribute_bound(held, depth)
        return super()._settled(parent, node, depth)

    def _part(self, items: cst.CSTNode) -> int | None:
        """Which part of each item is asked for, where that is an item of the attribute: ``for x, y in self.kept``."""
        name, part = self._asked
        held = _same_items(items)
        return part if isinstance(held, cst.Attribute) and held.attr.value == name else None

    def _computes(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether an operation makes a value of its own: what is only picked out keeps its graph without gradients."""
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
            return True
        if not isinstance(parent, cst.Call):
            return False
        if parent.func is node:
            return identifier(node) not in PICKS
        name = self._evaluator.names.qualified(parent.func) or ""
        return name.startswith("torch.")

    def _of_attribute(self, attribute: cst.Attribute) -> Fate | None:
        if attribute.attr.value in _OF_GRAPH:
            return Fate.USED
        found = super()._of_attribute(attribute)
        is_cut = found is Fate.VALUES and attribute.attr.value in ("detach", "data")
        self._cuts += is_cut and not self._evaluator.gradients.disabled(attribute)
        return found

    def _of_callers(self, statement: cst.Return, depth: int) -> Fate:
        """What becomes of what a function returns, where the file calls it."""
        function = self._tree.enclosing(statement, cst.FunctionDef)
        if id(function) in self._entered:
            return Fate.DROPPED  # the call is followed on
        calls = self._evaluator.callers(function) if function is not None and not function.decorators else ()
        if depth >= _MOST_CALLERS or not calls:
            return Fate.USED
        before = self._cuts
        worst = max(self.of(call, depth + 1) for call in calls)
        return worst if self._cuts > before else Fate.USED  # other files may call it too, and want the graph

    def _of_attribute_bound(self, attribute: cst.Attribute, depth: int) -> Fate:
        """What becomes of what another attribute of an object takes; one that is followed already adds nothing."""
        owner = self._evaluator.definitions.receiver(attribute.value) if isinstance(attribute.value, cst.Name) else None
        if owner is None or depth >= _MOST_CALLERS:
            return Fate.USED
        reads = self.reads(attribute)
        new = [read for read in reads if id(read) not in self._followed]
        self._followed.update(map(id, new))
        worst = max((self.of(read, depth + 1) for read in new), default=Fate.DROPPED)
        self._followed.difference_update(map(id, new))
        return worst

    def _goes_on(self, parent: cst.CSTNode, node: cst.CSTNode) -> bool:
        if isinstance(
            parent, (cst.Dict, cst.DictElement, cst.DictComp, cst.Set, cst.StarredElement, cst.BooleanOperation)
        ):
            return True
        if isinstance(parent, cst.Call) and parent.func is not node:
            name = self._evaluator.names.qualified(parent.func)
            if name in _COPIES or name == _NUMBERED or name == "builtins.zip":
                return True
        return super()._goes_on(parent, node)

    def _may_be(self, other: cst.Attribute, attribute: cst.Attribute) -> bool:
        """Whether an attribute of that name may be the same: not if it belongs to ``self`` of another class."""
        definitions = self._evaluator.definitions
        here, there = (
            definitions.receiver(a.value) if isinstance(a.value, cst.Name) else None for a in (other, attribute)
        )
        if here is None or there is None or here is there:
            return True
        families = map(definitions.family, self._tree.nodes(cst.ClassDef))
        return any(here in family and there in family for family in families)

    def _is_called(self, attribute: cst.Attribute) -> bool:
        """Whether an attribute is a method: ``other.pull()``."""
        call = self._tree.parent(attribute)
        return isinstance(call, cst.Call) and call.func is attribute

    def _is_written(self, attribute: cst.Attribute) -> bool:
        """Whether a place binds an attribute, or a part of it."""
        node: cst.CSTNode = attribute
        parent = self._tree.parent(node)
        while isinstance(parent, (cst.Subscript, cst.Tuple, cst.Element)) and not (
            isinstance(parent, cst.Subscript) and parent.value is not node
        ):
            node, parent = parent, self._tree.parent(parent)
        is_declared = isinstance(parent, cst.AnnAssign) and parent.target is node
        return isinstance(parent, (cst.AssignTarget, cst.Del)) or is_declared


def _peeled(items: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield an expression and what it takes the items of, or some: ``reversed(self.kept[-8:])``, ..., ``self.kept``."""
    while True:
        yield items
        if isinstance(items, cst.Subscript) and isinstance(items.slice[0].slice, cst.Slice):
            items = items.value
        elif isinstance(items, cst.Call) and len(items.args) == 1 and identifier(items.func) in _SAME_ITEMS:
            items = items.args[0].value
        else:
            return


def _same_items(items: cst.CSTNode) -> cst.CSTNode:
    """Return of what an expression has the items, or some of them: ``self.kept`` of ``reversed(self.kept[-8:])``."""
    *_, last = _peeled(items)
    return last


def _is_numbered(items: cst.CSTNode) -> bool:
    """Return whether each item comes with its number: ``reversed(list(enumerate(self.kept)))``."""
    return any(isinstance(each, cst.Call) and identifier(each.func) == "enumerate" for each in _peeled(items))


def _unzips(value: cst.CSTNode) -> bool:
    """Return whether an expression gives the parts of all items each by itself: ``zip(*self.kept)``."""
    is_zip = isinstance(value, cst.Call) and identifier(value.func) == "zip"
    return is_zip and isinstance(value, cst.Call) and [argument.star for argument in value.args] == ["*"]


def _holder(place: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(place, cst.Subscript):
        place = place.value
    return place


def _taken(loop: cst.For | cst.CompFor, part: int | None) -> Iterator[cst.Name | None]:
    """Yield the variables of a loop that take what it goes over, or a part; not the keys or numbers beside it."""
    target: cst.BaseExpression = loop.target
    is_pair = isinstance(target, cst.Tuple) and len(target.elements) == len(("key", "value"))
    numbers = method_call(loop.iter, "items") is not None or _is_numbered(loop.iter)
    if isinstance(target, cst.Tuple) and is_pair and numbers:
        target = target.elements[1].value
    is_plain = isinstance(target, cst.Tuple) and all(isinstance(each, cst.Element) for each in target.elements)
    if part is not None and is_plain and isinstance(target, cst.Tuple) and part < len(target.elements):
        target = target.elements[part].value
    yield from names_bound(target)
