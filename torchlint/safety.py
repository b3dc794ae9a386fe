"""How far a fix can be trusted."""

from __future__ import annotations

from enum import Enum


class Safety(str, Enum):
    """How far a fix can be trusted, in the words of Ruff's applicability."""

    SAFE = "safe"
    """A run that succeeded before computes the same values after; nothing outside the file can notice."""

    UNSAFE = "unsafe"
    """Right in almost every program, but an observable contract can change."""

    DISPLAY = "display"
    """Shown, never applied."""
