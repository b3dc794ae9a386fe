"""What the interpreter of layers computes with: modules, lists of modules, and tensors that modules give out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst


@dataclass(eq=False, slots=True)
class Tail:
    """One place where the output of a layer comes out: a slot in a sequence, or a call in ``forward``.

    Tails form a tree: the layer itself, the slots and calls that use it, the calls of helpers that hand it out.
    """

    site: cst.Call
    """The call that creates the layer."""

    place: cst.CSTNode
    parent: Tail | None = None
    consumers: dict[cst.CSTNode, set[cst.CSTNode]] = field(default_factory=dict)
    """Where the output is taken, and what takes it: the call that creates a module, or any other node."""

    derived: dict[cst.CSTNode, Tail] = field(default_factory=dict)
    returned: set[cst.CSTNode] = field(default_factory=set)
    """The statements that return the output, or what ends with the layer, for the caller to take."""

    twice: set[tuple[cst.CSTNode, cst.CSTNode]] = field(default_factory=set)
    """Pairs of places that take the output in one run."""

    shared: bool = False
    """Whether the output goes where it cannot be followed."""

    called: bool = False
    """Whether this is a call on a tensor, and no slot in a sequence."""

    ends: bool = False
    """Whether the layer is the last of what stands there, on some path: its output is that of the whole."""

    def at(self, place: cst.CSTNode) -> Tail:
        """Return the tail of the same layer where it is put or called."""
        if place is self.place:
            return self
        found = self.derived.get(place)
        if found is None:
            found = self.derived[place] = Tail(self.site, place, self)
        return found

    def end_at(self, place: cst.CSTNode) -> Tail:
        """Return the tail of the same layer where what it is the last of is put or called."""
        found = self.at(place)
        found.ends = True
        return found

    def feed(self, consumers: Iterable[cst.CSTNode], place: cst.CSTNode) -> None:
        """Note that the output is taken."""
        self.consumers.setdefault(place, set()).update(consumers)


@dataclass(frozen=True, slots=True)
class Chain:
    """A module, or several of which one is meant: what its input goes to and where its output comes from."""

    firsts: frozenset[cst.CSTNode] = frozenset()
    lasts: frozenset[Tail] = frozenset()
    members: frozenset[Tail] = frozenset()
    """The outputs of the items, which an index or a loop could reach; what is inside an item is no item itself."""

    nullable: bool = False
    """Whether the input may come out unchanged, as from an empty sequence."""

    def at(self, place: cst.CSTNode) -> Chain:
        """Return the module put or called at another place."""
        moved = frozenset(tail.end_at(place) for tail in self.lasts)
        return Chain(self.firsts, moved, self.members | moved, self.nullable)

    def slot(self, place: cst.CSTNode) -> Chain:
        """Return the module as one item of a sequence or list."""
        moved = self.at(place).lasts
        return Chain(self.firsts, moved, moved, self.nullable)

    def then(self, following: Chain, place: cst.CSTNode) -> Chain:
        """Return both in a row."""
        if following.firsts:
            for tail in self.lasts:
                tail.feed(following.firsts, place)
        return Chain(
            self.firsts | following.firsts if self.nullable else self.firsts,
            self.lasts | following.lasts if following.nullable else following.lasts,
            self.members | following.members,
            self.nullable and following.nullable,
        )


EMPTY = Chain(nullable=True)


@dataclass(frozen=True, slots=True)
class Items:
    """A list, tuple, dict, ``ModuleList`` or ``ModuleDict`` whose items are visible.

    An item is a module, a list, a tensor, or a splice: what a star puts in, of which only the order is known.
    """

    items: tuple[Value, ...] = ()
    nodes: tuple[cst.CSTNode, ...] = ()
    """The expression of each item."""

    keys: tuple[str | None, ...] | None = None
    """The keys of a mapping."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Several lists of which one is meant."""

    alternatives: frozenset[Items]


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor that comes straight out of a module."""

    tails: frozenset[Tail]


@dataclass(frozen=True, slots=True)
class Nothing:
    """The constant None."""


NOTHING = Nothing()
Value: TypeAlias = "Chain | Items | Splice | Output | Nothing | None"
"""None is what is not known, or is of no interest here."""


def opaque(node: cst.CSTNode) -> Chain:
    """Return a module of which nothing is known."""
    return Chain(frozenset((node,)))


def join(values: Iterable[tuple[Value, cst.CSTNode]]) -> Value:
    """Return what is true if any one of the values is meant; each comes with the node it stands for."""
    present = [(value, node) for value, node in values if not isinstance(value, Nothing)]
    if not present:
        return NOTHING
    if all(isinstance(value, Output) for value, _ in present):
        return Output(frozenset(tail for value, _ in present if isinstance(value, Output) for tail in value.tails))
    if all(isinstance(value, (Items, Splice)) for value, _ in present):
        lists = frozenset(alternative for value, _ in present for alternative in alternatives(value))
        return next(iter(lists)) if len(lists) == 1 else Splice(lists)
    chains = [value if isinstance(value, Chain) else opaque(node) for value, node in present]
    if not any(isinstance(value, Chain) for value, _ in present):
        return None
    return Chain(
        frozenset().union(*(chain.firsts for chain in chains)),
        frozenset().union(*(chain.lasts for chain in chains)),
        frozenset().union(*(chain.members for chain in chains)),
        any(chain.nullable for chain in chains),
    )


def alternatives(value: Value) -> tuple[Items, ...]:
    """Return the lists that a value can be."""
    if isinstance(value, Items):
        return (value,)
    return tuple(value.alternatives) if isinstance(value, Splice) else ()


def chain_of(value: Value, node: cst.CSTNode) -> Chain:
    """Return the modules of a value in a row, as ``Sequential`` runs them."""
    if isinstance(value, Chain):
        return value
    lists = alternatives(value)
    if not lists:
        return opaque(node)
    chains = []
    for found in lists:
        row = EMPTY
        for item, item_node in zip(found.items, found.nodes, strict=True):
            row = row.then(chain_of(item, item_node), item_node)
        chains.append(row)
    joined = join([(chain, node) for chain in chains])
    return joined if isinstance(joined, Chain) else opaque(node)


def moved(value: Value, place: cst.CSTNode) -> Value:
    """Return a value that a helper hands out, at the place where the helper is called."""
    if isinstance(value, Chain):
        return value.at(place)
    if isinstance(value, Output):
        return Output(frozenset(tail.at(place) for tail in value.tails))
    if isinstance(value, Items):
        return Items(tuple(moved(item, place) for item in value.items), value.nodes, value.keys)
    if isinstance(value, Splice):
        lists = frozenset(moved(found, place) for found in value.alternatives)
        return Splice(frozenset(found for found in lists if isinstance(found, Items)))
    return value


def tails(value: Value) -> frozenset[Tail]:
    """Return everything that whoever gets hold of a value could take an output from."""
    if isinstance(value, Chain):
        return value.lasts | value.members
    if isinstance(value, Output):
        return value.tails
    return frozenset(tail for found in alternatives(value) for item in found.items for tail in tails(item))
