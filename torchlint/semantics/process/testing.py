"""Files that test something."""

from __future__ import annotations

from torchlint.semantics.binding.scopes import Scopes

_TESTING = ("pytest", "unittest", "hypothesis", "nose", "parameterized")


def tests(scopes: Scopes) -> bool:
    """Return whether a file tests something: what it runs, it runs once."""
    return any(map(scopes.imports, _TESTING))
