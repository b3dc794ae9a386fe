"""What a file proves about the torch version that it needs."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.process.target import Target
from torchlint.semantics.tables.versions import LAST_NAMES, SINCE
from torchlint.syntax.calls import code, identifier
from torchlint.syntax.statements import is_main_guard
from torchlint.syntax.walk import Tree

_GUARDS = (cst.If, cst.IfExp, cst.Try, cst.BooleanOperation)
_ONLY_WAY = "torch.accelerator."
"""The program has no other way to a device: a flag in front of it decides about the device, not about the version."""
_VERSION = re.compile(r"hasattr|getattr|version|find_spec|\bhas_", re.IGNORECASE)


def _is_guarded(node: cst.CSTNode, tree: Tree) -> bool:
    return any(
        isinstance(a, _GUARDS) and not (isinstance(a, cst.If) and is_main_guard(a)) for a in tree.ancestors(node)
    )


def _asks_for_version(node: cst.CSTNode, tree: Tree) -> bool:
    """Whether the program asks for the version, or for the name itself, before it comes to a node."""
    child = node
    for ancestor in tree.ancestors(node):
        if isinstance(ancestor, cst.Try):
            return True
        test = ancestor.test if isinstance(ancestor, (cst.If, cst.IfExp)) else None
        asked = ancestor.left if isinstance(ancestor, cst.BooleanOperation) else test
        if asked is not None and asked is not child and _VERSION.search(code(asked)):
            return True
        child = ancestor
    return False


def proven_target(tree: Tree, names: Names, assumed: Target) -> Target:
    """Return the newest version that an unguarded call in the file needs, if nothing else says which one is used.

    A call under ``if``, ``try`` or ``and`` may be there for newer versions only and proves nothing.
    """
    if assumed.known:
        return assumed
    newest = assumed
    for call in tree.nodes(cst.Call):
        if identifier(call.func) not in LAST_NAMES:
            continue
        name = names.qualified(call.func)
        since = SINCE.get(name) if name is not None else None
        if name is None or since is None or since <= newest.version:
            continue
        guards = _asks_for_version if name.startswith(_ONLY_WAY) else _is_guarded
        if not guards(call, tree):
            newest = Target(since, f"`{name}` in the file needs it", known=False)
    return newest
