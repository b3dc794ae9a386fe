"""The one walk over a tree: parents, an index by node type, and the place of each node in document order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

import libcst as cst

from torchlint.syntax.calls import identifier

NodeType = TypeVar("NodeType", bound=cst.CSTNode)
Mark = TypeVar("Mark")

# Fields without meaning to the semantics: white space, punctuation, and names that are no variables.
SKIPPED_FIELDS = frozenset(
    {
        "leading_lines",
        "leading_whitespace",
        "lines_after_decorators",
        "lines_after_module_docstring",
        "header",
        "footer",
        "trailing_whitespace",
        "newline",
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "semicolon",
        "equal",
        "dot",
        "colon",
        "first_colon",
        "second_colon",
        "indent",
        "encoding",
        "default_indent",
        "default_newline",
        "has_trailing_newline",
        "asynchronous",
        "operator",
        "relative",
        "star_etc",
        "open_quote",
        "separator",
    }
)
# Nodes whose fields do not stand in document order, or hold names that are no variables.
_ORDERED_FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.FunctionDef: ("decorators", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "bases", "keywords", "body"),
    cst.Attribute: ("value",),
    cst.Arg: ("value",),
    cst.NamedExpr: ("value", "target"),
    cst.Assign: ("targets", "value"),
    cst.Import: ("names",),
    cst.ImportFrom: ("names",),
    cst.ImportAlias: (),
    cst.Global: (),
    cst.Nonlocal: (),
    cst.MatchKeywordElement: ("pattern",),
    cst.ListComp: ("for_in", "elt"),
    cst.SetComp: ("for_in", "elt"),
    cst.GeneratorExp: ("for_in", "elt"),
    cst.DictComp: ("for_in", "key", "value"),
    cst.CompFor: ("iter", "target", "ifs", "inner_for_in"),
    cst.For: ("iter", "target", "body", "orelse"),
}


_LEAVES = (
    cst.BaseParenthesizableWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Comment,
    cst.Name,
    cst.BaseNumber,
    cst.SimpleString,
    cst.FormattedStringText,
    cst.BaseCompOp,
    cst.BaseAugOp,
)


def _child_fields(node_type: type[cst.CSTNode]) -> tuple[str, ...]:
    if issubclass(node_type, _LEAVES):
        return ()
    if node_type in _ORDERED_FIELDS:
        return _ORDERED_FIELDS[node_type]
    names = (field.name for field in fields(node_type))
    return tuple(name for name in names if name not in SKIPPED_FIELDS and not name.startswith("whitespace"))


@dataclass(frozen=True, slots=True)
class Tree:
    """A module with what one walk over it tells. Nodes are keyed by identity, which the module keeps alive."""

    module: cst.Module
    parents: dict[int, cst.CSTNode]
    ordered: list[cst.CSTNode]
    """All nodes in document order."""

    orders: dict[int, int]
    """The place of each node among them."""

    by_type: dict[type[cst.CSTNode], list[cst.CSTNode]]
    lasts: dict[int, int] = field(default_factory=dict)
    """What `last` has worked out."""

    places: dict[type[cst.CSTNode], list[int]] = field(default_factory=dict)
    """The places of the nodes of a type, once `below` was asked for them."""

    by_name: dict[str, list[cst.Name]] = field(default_factory=dict)
    """The names by what they say, once `named` was asked for them."""

    attributes_by_name: dict[str, list[cst.Attribute]] = field(default_factory=dict)
    """The attributes by their names, once `attributes_named` was asked for them."""

    calls_by_name: dict[str, list[cst.Call]] = field(default_factory=dict)
    """The calls by the last name of what is called, once `calls_named` was asked for them."""

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the parent of a node, None for the module."""
        return self.parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the parents of a node, innermost first."""
        current = self.parents.get(id(node))
        while current is not None:
            yield current
            current = self.parents.get(id(current))

    def order(self, node: cst.CSTNode) -> int:
        """Return the place of a node in document order."""
        return self.orders[id(node)]

    def last(self, node: cst.CSTNode) -> int:
        """Return the place of the last node below a node: what is below it has the places from its own to this one."""
        found = self.lasts.get(id(node))
        if found is None:
            current = node
            while below := children(current):
                current = below[-1]
            found = self.lasts[id(node)] = self.orders[id(current)]
        return found

    def mark(self, marks: list[Mark], node: cst.CSTNode, mark: Mark) -> None:
        """Put a mark at the places of a node and of all below it."""
        first, last = self.orders[id(node)], self.last(node)
        marks[first : last + 1] = [mark] * (last + 1 - first)

    def within(self, node: cst.CSTNode, ancestor: cst.CSTNode) -> bool:
        """Return whether a node is ``ancestor`` or stands below it."""
        return self.orders[id(ancestor)] <= self.orders[id(node)] <= self.last(ancestor)

    def nodes(self, node_type: type[NodeType]) -> list[NodeType]:
        """Return all nodes of exactly this type in document order."""
        return self.by_type.get(node_type, [])  # type: ignore[return-value]

    def named(self, name: str) -> list[cst.Name]:
        """Return all uses of a name, whatever it stands for in each, in document order."""
        if not self.by_name:
            for node in self.nodes(cst.Name):
                self.by_name.setdefault(node.value, []).append(node)
        return self.by_name.get(name, [])

    def attributes_named(self, name: str) -> list[cst.Attribute]:
        """Return all attributes of a name, of whatever objects, in document order."""
        if not self.attributes_by_name:
            for node in self.nodes(cst.Attribute):
                self.attributes_by_name.setdefault(node.attr.value, []).append(node)
        return self.attributes_by_name.get(name, [])

    def calls_named(self, *names: str) -> list[cst.Call]:
        """Return all calls of functions and methods of these names, in document order: `save(x)`, `torch.save(x)`."""
        if not self.calls_by_name:
            for node in self.nodes(cst.Call):
                self.calls_by_name.setdefault(identifier(node.func), []).append(node)
        if len(names) == 1:
            return self.calls_by_name.get(names[0], [])
        found = [call for name in names for call in self.calls_by_name.get(name, ())]
        return sorted(found, key=self.order)

    def enclosing(self, node: cst.CSTNode, *node_types: type[NodeType]) -> NodeType | None:
        """Return the innermost proper ancestor of exactly one of these types."""
        current = self.parents.get(id(node))
        while current is not None:
            if current.__class__ in node_types:
                return current
            current = self.parents.get(id(current))
        return None

    def below(self, node: cst.CSTNode, node_type: type[NodeType]) -> list[NodeType]:
        """Return the nodes of exactly this type at or below a node in document order."""
        found = self.nodes(node_type)
        places = self.places.get(node_type)
        if places is None:
            places = self.places[node_type] = list(map(self.orders.__getitem__, map(id, found)))
        first = bisect_left(places, self.orders[id(node)])
        return found[first : bisect_right(places, self.last(node), first)] if first < len(places) else []

    def descendants(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Return a node and everything below it in document order."""
        place = self.orders.get(id(node))
        return _traversed(node) if place is None else iter(self.ordered[place : self.last(node) + 1])


class _Fields(dict[type, tuple[str, ...] | None]):
    """The fields of each type that a child can have, worked out when the type is first met; None for no node."""

    def __missing__(self, node_type: type) -> tuple[str, ...] | None:
        found = _child_fields(node_type) if issubclass(node_type, cst.CSTNode) else None
        self[node_type] = found
        return found


_FIELDS = _Fields()


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the meaningful children of a node in document order."""
    found: list[cst.CSTNode] = []
    for name in _FIELDS[node.__class__] or ():
        child = getattr(node, name)
        if child.__class__ is tuple or child.__class__ is list:
            found.extend(child)
        elif _FIELDS[child.__class__] is not None:
            found.append(child)
    return found


def _traversed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node that is not of the tree, as a rule makes them, and everything below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


class _Getters(dict[type, Callable[[cst.CSTNode], tuple[Any, ...]]]):
    """What reads the fields of a type, of which there are several, at once."""

    def __missing__(self, node_type: type) -> Callable[[cst.CSTNode], tuple[Any, ...]]:
        found = self[node_type] = attrgetter(*(_FIELDS[node_type] or ()))
        return found


_GETTERS = _Getters()


def walk(module: cst.Module) -> Tree:
    """Return the tree of a module."""
    parents: dict[int, cst.CSTNode] = {}
    by_type: defaultdict[type[cst.CSTNode], list[cst.CSTNode]] = defaultdict(list)
    nodes: list[cst.CSTNode] = []
    stack: list[cst.CSTNode] = [module]
    while stack:  # as with children(), but most time of building a model goes by here
        node = stack.pop()
        node_type = node.__class__
        nodes.append(node)
        by_type[node_type].append(node)
        names = _FIELDS[node_type]
        if not names:
            continue
        if len(names) == 1:
            child = getattr(node, names[0])
            if child.__class__ is tuple or child.__class__ is list:
                for each in child:
                    parents[id(each)] = node
                stack += child[::-1]
            elif _FIELDS[child.__class__] is not None:
                parents[id(child)] = node
                stack.append(child)
            continue
        below: list[cst.CSTNode] = []
        for child in _GETTERS[node_type](node):
            if child.__class__ is tuple or child.__class__ is list:
                below += child
            elif _FIELDS[child.__class__] is not None:
                below.append(child)
        for each in below:
            parents[id(each)] = node
        below.reverse()
        stack += below
    orders = dict(zip(map(id, nodes), range(len(nodes)), strict=True))
    return Tree(module, parents, nodes, orders, dict(by_type))
