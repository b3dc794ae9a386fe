"""Nodes of a draft get what libcst's parser makes of their text: from then on they hold all that it holds.

They stay the same nodes, so that what is known of them stays known.
"""

from __future__ import annotations

from dataclasses import fields

import libcst as cst

from torchlint.syntax.draft.nodes import NoDraftError, set_field
from torchlint.syntax.walk import SKIPPED_FIELDS


class _Fields(dict[type, tuple[tuple[str, bool], ...]]):
    """The fields of each type of node, and whether each is layout; worked out when the type is first met."""

    def __missing__(self, node_type: type[cst.CSTNode]) -> tuple[tuple[str, bool], ...]:
        names = (field.name for field in fields(node_type))
        found = tuple((name, name in SKIPPED_FIELDS or name.startswith("whitespace")) for name in names)
        self[node_type] = found
        return found


_FIELDS = _Fields()


def fill(drafted: cst.CSTNode, parsed: cst.CSTNode) -> None:
    """Give a node of a draft, and all below it, what the parsed one holds besides the nodes with a meaning.

    Raises:
        NoDraftError: they are not the same in all that has a meaning, as where strings stand side by side.
    """
    waiting = [(drafted, parsed)]
    while waiting:
        ours, theirs = waiting.pop()
        if ours.__class__ is not theirs.__class__:
            raise NoDraftError
        if isinstance(ours, cst.Name) and ours.value != theirs.value:  # type: ignore[attr-defined]
            raise NoDraftError
        for name, is_layout in _FIELDS[ours.__class__]:
            value = getattr(theirs, name)
            if is_layout or isinstance(value, str):
                set_field(ours, name, value)
            elif isinstance(value, cst.CSTNode):
                waiting.append((_node(getattr(ours, name, None)), value))
            elif isinstance(value, (tuple, list)):
                waiting += _pairs(getattr(ours, name, None), value)
            elif isinstance(getattr(ours, name, None), cst.CSTNode):
                raise NoDraftError
            else:
                set_field(ours, name, value)


def _node(value: object) -> cst.CSTNode:
    if not isinstance(value, cst.CSTNode):
        raise NoDraftError
    return value


def _pairs(ours: object, theirs: tuple[cst.CSTNode, ...] | list[cst.CSTNode]) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
    if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
        raise NoDraftError
    return [(_node(own), their) for own, their in zip(ours, theirs, strict=True)]
