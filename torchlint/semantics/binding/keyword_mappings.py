"""Arguments that ``**options`` brings in, where the mapping stands in the file and nobody changes it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.semantics.binding.scopes import BindingKind, Scopes
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree


def spelled_out(arguments: Sequence[cst.Arg], scopes: Scopes, tree: Tree) -> Sequence[cst.Arg]:
    """Return arguments with ``**{...}`` in the place of ``**options``, where the name holds that very mapping."""
    if not any(argument.star == "**" and isinstance(argument.value, cst.Name) for argument in arguments):
        return arguments
    return [_spelled_out(argument, scopes, tree) for argument in arguments]


def _spelled_out(argument: cst.Arg, scopes: Scopes, tree: Tree) -> cst.Arg:
    if argument.star != "**" or not isinstance(argument.value, cst.Name):
        return argument
    found = scopes.bindings(argument.value)
    if len(found) != 1 or found[0].kind is not BindingKind.ASSIGNMENT or found[0].path:
        return argument
    made = found[0].value
    if not isinstance(made, cst.Dict) and not (isinstance(made, cst.Call) and identifier(made.func) == "dict"):
        return argument
    same = (n for n in tree.named(argument.value.value) if n is not found[0].node)
    if _has_other_names(found[0].node, tree) or any(
        scopes.bindings(n) == found and not _unpacks(n, tree) for n in same
    ):
        return argument  # somebody may add to it
    return argument.with_changes(value=made)


def _has_other_names(name: cst.CSTNode, tree: Tree) -> bool:
    """Whether an assignment gives its value to something else as well: ``options = others = {}``."""
    target = tree.parent(name)
    statement = tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    return isinstance(statement, cst.Assign) and len(statement.targets) > 1


def _unpacks(name: cst.Name, tree: Tree) -> bool:
    parent = tree.parent(name)
    return isinstance(parent, cst.Arg) and parent.star == "**"
