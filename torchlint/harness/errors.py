"""What can go wrong in the harness, each as one clear line for the user."""

from __future__ import annotations


class HarnessError(Exception):
    """Nothing can be measured here; the message says what to do."""


class ProgramError(HarnessError):
    """A program raised, died or took too long; ``details`` is the end of what it printed."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class FixedProgramError(HarnessError):
    """The fixed program fails; the message says why."""
