"""The names that occur in a file, whatever they refer to."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.binding.scopes import dotted
from torchlint.syntax.walk import Tree

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STREAMS = ("Stream", "stream", "ExternalStream", "current_stream", "default_stream", "set_stream")


def in_words(name: str) -> str:
    """Return a name with its words apart and in lower case: ``atom_actor`` for ``AtomActor``."""
    return _HUMP.sub("_", name).lower()


class Vocabulary:
    """Answers whether a name occurs: cheap, and enough where a rule stays silent if it does."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._mentioned: dict[tuple[str, ...], bool] = {}

    @cached_property
    def attributes(self) -> frozenset[str]:
        """What is read or written after a dot."""
        return frozenset(attribute.attr.value for attribute in self._tree.nodes(cst.Attribute))

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """What stands by itself."""
        return frozenset(name.value for name in self._tree.nodes(cst.Name))

    @cached_property
    def imported(self) -> frozenset[str]:
        """The last parts of what is imported."""
        return frozenset(dotted(alias.name).rpartition(".")[2] for alias in self._tree.nodes(cst.ImportAlias))

    def mentions(self, names: tuple[str, ...]) -> bool:
        """Return whether a name, an attribute or something imported is called so."""
        found = self._mentioned.get(names)
        if found is None:
            found = not all(known.isdisjoint(names) for known in (self.identifiers, self.attributes, self.imported))
            self._mentioned[names] = found
        return found

    @cached_property
    def mentions_streams(self) -> bool:
        """Whether the file speaks of streams of the device, between which nothing waits by itself."""
        return self.mentions(_STREAMS)

    @cached_property
    def mentions_mps(self) -> bool:
        """Whether the file speaks of Apple's devices."""
        texts = (text.raw_value for text in self._tree.nodes(cst.SimpleString))
        return "mps" in self.attributes or any(text.startswith("mps") for text in texts)
