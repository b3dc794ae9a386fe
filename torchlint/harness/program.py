"""The fixed program of a case: what torchlint's own fixer makes of the original, or the one written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchlint.harness.case import Case

Fixer = Callable[[str, str], str]
"""Returns what a rule's fixes make of a program's text; the same text where there is nothing to fix."""

BY_FIXER, BY_HAND = "torchlint", "hand"


@dataclass(frozen=True, slots=True)
class FixedProgram:
    """The text to compare a case's original with, and who wrote it."""

    text: str
    origin: str


def torchlint_fixer(source: str, code: str) -> str:
    """Return the source with all fixes of one rule applied, unsafe ones too; unchanged if there is no such rule."""
    from torchlint import fix_source
    from torchlint.registry import rules

    if all(rule.code != code for rule in rules()):
        return source
    return fix_source(source, unsafe_fixes=True, select=[code]).text


def fixed_program(case: Case, fixer: Fixer) -> FixedProgram | None:
    """Return the fixed program; None where the fixer changes nothing and none was written by hand."""
    text = fixer(case.source, case.code)
    if text != case.source:
        return FixedProgram(text, BY_FIXER)
    return FixedProgram(case.by_hand, BY_HAND) if case.by_hand is not None else None
