"""Files that test something."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Scopes
from torchlint.syntax.calls import identifier
from torchlint.syntax.walk import Tree

_TESTING = ("pytest", "unittest", "hypothesis", "nose", "parameterized")
_ASSERTS = ("torch.testing.assert_", "numpy.testing.assert_")
_COMPARES = ("all", "allclose", "equal", "array_equal")


def tests(scopes: Scopes) -> bool:
    """Return whether a file tests something: what it runs, it runs once."""
    return any(map(scopes.imports, _TESTING))


def compares_results(tree: Tree, names: Names) -> bool:
    """Return whether a file asserts that two ways to compute something give the same."""
    asserted = (call for claim in tree.nodes(cst.Assert) for call in tree.below(claim.test, cst.Call))
    if any(identifier(call.func) in _COMPARES for call in asserted):
        return True
    return any((names.qualified(call.func) or "").startswith(_ASSERTS) for call in tree.nodes(cst.Call))
