"""What is known on one path through a function, and what taking a tensor means there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from torchlint.semantics.layers.values import Chain, Output, Tail, Value, tails

SELF = "self()"
"""The variable that stands for the sequence that ``self`` is; attributes of ``self`` are ``.name``."""


@dataclass(slots=True)
class State:
    """The variables on one path, and the nodes that have taken each tensor."""

    variables: dict[str, Value] = field(default_factory=dict)
    taken: dict[Tail, frozenset[cst.CSTNode]] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a state that can go another way."""
        return State(dict(self.variables), dict(self.taken))

    def key(self) -> tuple[frozenset[tuple[str, Value]], frozenset[tuple[Tail, frozenset[cst.CSTNode]]]]:
        """Return what tells this state from others."""
        return frozenset(self.variables.items()), frozenset(self.taken.items())

    def set(self, name: str, value: Value) -> None:
        """Bind a variable."""
        if value is None:
            self.variables.pop(name, None)
        else:
            self.variables[name] = value

    def take(self, found: Iterable[Tail], consumers: Iterable[cst.CSTNode], place: cst.CSTNode) -> None:
        """Note that a tensor is taken at a node."""
        consumers = frozenset(consumers)
        for tail in found:
            self.hold(tail, place)
            tail.feed(consumers, place)

    def hold(self, tail: Tail, place: cst.CSTNode) -> None:
        """Note that a tensor is taken, and where else it is on this path."""
        before = self.taken.get(tail, frozenset())
        tail.twice |= {(other, place) for other in before if other is not place}
        self.taken[tail] = before | {place}

    def release(self, value: Value, place: cst.CSTNode) -> None:
        """Note that a value goes where it cannot be followed."""
        if isinstance(value, Output):
            self.take(value.tails, (place,), place)
            return
        ends = value.lasts if isinstance(value, Chain) else frozenset()
        for tail in tails(value):
            (tail.end_at(place) if tail in ends else tail.at(place)).shared = True

    def open(self, value: Value, place: cst.CSTNode) -> None:
        """Note that the modules inside a sequence can be run by themselves."""
        self.release(value, place)
        if isinstance(value, Chain):
            for tail in value.members:
                tail.shared = True

    def call(self, chain: Chain, argument: Value, place: cst.CSTNode) -> Value:
        """Return the output of a module that is called."""
        if isinstance(argument, Output):
            self.take(argument.tails, chain.firsts | {place} if chain.nullable else chain.firsts, place)
        else:
            self.release(argument, place)
        found = frozenset(tail.end_at(place) for tail in chain.lasts)
        for tail in found:
            tail.called = True
            self.taken.pop(tail, None)
        return Output(found) if found else None
