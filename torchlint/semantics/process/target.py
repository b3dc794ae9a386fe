"""The oldest torch version that the checked code supports."""

from __future__ import annotations

from typing import NamedTuple

OLDEST_SUPPORTED = (1, 8)


class Target(NamedTuple):
    """A torch version and where it comes from (a sentence fragment: "torch>=2.0 in pyproject.toml")."""

    version: tuple[int, int]
    origin: str
    known: bool = True
    """False where nothing says so: the oldest supported version is assumed, or the oldest that the file runs with."""

    def __str__(self) -> str:
        return shown(self.version)

    def lacks(self, version: tuple[int, int]) -> bool:
        """Return whether the project is known to support versions older than this one."""
        return self.known and self.version < version


def shown(version: tuple[int, int]) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


UNKNOWN_TARGET = Target(
    OLDEST_SUPPORTED, "the oldest supported version, since nothing says which one is used", known=False
)
