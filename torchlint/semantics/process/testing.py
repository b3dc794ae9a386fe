"""Files that test something."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.binding.qualified_names import Names
from torchlint.semantics.binding.scopes import Scopes
from torchlint.syntax.calls import literal, method_call
from torchlint.syntax.walk import Tree

_TESTING = ("pytest", "unittest", "hypothesis", "nose", "parameterized")
_ASSERTS = ("torch.testing.assert_", "numpy.testing.assert_")
_COMPARES = frozenset(("torch.equal", "torch.allclose", "numpy.allclose", "numpy.array_equal"))


def tests(scopes: Scopes) -> bool:
    """Return whether a file tests something: what it runs, it runs once."""
    return any(map(scopes.imports, _TESTING))


def compares_results(tree: Tree, names: Names) -> bool:
    """Return whether a file asserts that two ways to compute something give the same."""
    asserted = (call for claim in tree.nodes(cst.Assert) for call in tree.below(claim.test, cst.Call))
    if any(_compares(call, names) for call in asserted):
        return True
    return any((names.qualified(call.func) or "").startswith(_ASSERTS) for call in tree.nodes(cst.Call))


def _compares(call: cst.Call, names: Names) -> bool:
    """Return whether a call asks if two results are equal: ``torch.equal(a, b)``, ``(a == b).all()``."""
    method = method_call(call, "all")
    compared = method.value if method is not None else None
    if isinstance(compared, cst.Comparison) and len(compared.comparisons) == 1:
        other = compared.comparisons[0]
        return isinstance(other.operator, cst.Equal) and literal(other.comparator) is None
    return names.qualified(call.func) in _COMPARES
