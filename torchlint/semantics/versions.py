"""What a file proves about the torch version that it needs."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.names import Names
from torchlint.semantics.tables.versions import LAST_NAMES, SINCE
from torchlint.semantics.target import Target
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

_GUARDS = (cst.If, cst.IfExp, cst.Try, cst.BooleanOperation)


def _is_guarded(node: cst.CSTNode, tree: Tree) -> bool:
    return any(
        isinstance(a, _GUARDS) and not (isinstance(a, cst.If) and is_main_guard(a)) for a in tree.ancestors(node)
    )


def is_main_guard(statement: cst.If) -> bool:
    """Return whether an ``if`` compares ``__name__``: what it holds runs whenever the file is run."""
    test = statement.test
    return isinstance(test, cst.Comparison) and identifier(test.left) == "__name__"


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
        if since is not None and since > newest.version and not _is_guarded(call, tree):
            newest = Target(since, f"`{name}` in the file needs it")
    return newest
