"""Fixes on nodes become fixes on text, and only as safe as what they rely on allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torchlint.diagnostic import TextEdit, TextFix
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import LocateError, Locator
from torchlint.edits.orphans import orphaned_imports
from torchlint.edits.render import render
from torchlint.edits.text import comments, merged
from torchlint.edits.verify import Original
from torchlint.finding import Fix, Safety
from torchlint.rule import Rule
from torchlint.semantics.evidence import Evidence

LOST_COMMENT = "A comment in the code that it replaces is lost."
INFERRED = "It relies on what the code in this file suggests, which is likely but not certain."


class FixSettings(Protocol):
    """The settings that decide which fixes are offered, and how far they are trusted: selectors of rules."""

    @property
    def fixable(self) -> Sequence[str] | None:
        """Rules whose fixes are offered, None for all."""

    @property
    def unfixable(self) -> Sequence[str]:
        """Rules whose fixes are not offered."""

    @property
    def extend_safe_fixes(self) -> Sequence[str]:
        """Rules whose unsafe fixes count as safe."""

    @property
    def extend_unsafe_fixes(self) -> Sequence[str]:
        """Rules whose safe fixes count as unsafe."""


@dataclass(frozen=True, slots=True)
class FixMaker:
    """Makes the text fixes of one file; whether the results parse is for `plan.without_broken` to say."""

    locator: Locator
    original: Original
    path: str
    settings: FixSettings

    def make(self, rule: Rule, fix: Fix) -> TextFix | None:
        """Return the fix on text, None if it cannot be offered."""
        if fix.evidence is Evidence.NAMED or not is_fixable(rule, self.settings):
            return None
        try:
            edits = render(self.locator, fix.edits)
        except (RenderError, LocateError):
            return None
        edits = merged([*edits, *orphaned_imports(self.original, self.path, edits)]) or ()
        if not edits:
            return None
        safety, why = self._safety(rule, fix, edits)
        return TextFix(fix.message, edits, safety, why)

    def _safety(self, rule: Rule, fix: Fix, edits: Sequence[TextEdit]) -> tuple[Safety, str]:
        safety, why = fix.safety, fix.why
        if safety is Safety.SAFE and fix.evidence < Evidence.PROVEN:
            safety, why = Safety.UNSAFE, why or INFERRED
        if safety is Safety.UNSAFE and any(selects(s, rule) for s in self.settings.extend_safe_fixes):
            safety = Safety.SAFE
        elif safety is Safety.SAFE and any(selects(s, rule) for s in self.settings.extend_unsafe_fixes):
            safety, why = Safety.UNSAFE, why or "The settings name this rule in `extend-unsafe-fixes`."
        if loses_comment(self.locator.text, edits):
            safety = Safety.UNSAFE if safety is Safety.SAFE else safety
            why = f"{why} {LOST_COMMENT}".strip()
        return safety, why


def is_fixable(rule: Rule, settings: FixSettings) -> bool:
    """Return whether the settings let the fixes of a rule be offered."""
    allowed = settings.fixable is None or any(selects(selector, rule) for selector in settings.fixable)
    return allowed and not any(selects(selector, rule) for selector in settings.unfixable)


def selects(selector: str, rule: Rule) -> bool:
    """Return whether a selector (a code, a prefix of one, a name, ALL) means a rule."""
    return selector in ("ALL", rule.name) or rule.code.startswith(selector)


def loses_comment(text: str, edits: Sequence[TextEdit]) -> bool:
    """Return whether a comment stands in what is removed and not in what is written."""
    removed = [edit.range for edit in edits if "#" in text[edit.range.start : edit.range.end]]
    if not removed:
        return False
    known = comments(text)
    if known is None:
        return True
    written = "\n".join(edit.content for edit in edits)
    lost = [c for c in known if any(c.start < r.end and r.start < c.end for r in removed)]
    return any(text[comment.start : comment.end] not in written for comment in lost)
