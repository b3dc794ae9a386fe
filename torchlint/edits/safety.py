"""Fixes on nodes become fixes on text, and only as safe as what they rely on allows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torchlint.diagnostic import TextEdit, TextFix
from torchlint.edits.errors import RenderError
from torchlint.edits.locate import LocateError, Locator
from torchlint.edits.orphans import orphaned_imports
from torchlint.edits.render import render
from torchlint.edits.text import merged
from torchlint.edits.verify import Original
from torchlint.finding import Fix, Safety
from torchlint.rule import Rule
from torchlint.semantics.evidence import Evidence

LOST_COMMENT = "A comment in the code that it replaces is lost."
DISTRUSTED = "The settings name this rule in `extend-unsafe-fixes`."
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
        orphans = orphaned_imports(self.original, self.path, edits)
        whole = merged([*edits, *(orphan.edit for orphan in orphans)])
        if not whole:
            return None
        safety, why = self._trusted(rule, *_proven(fix))
        reasons = [orphan.risk for orphan in orphans if orphan.risk]
        if loses_comment(self.original, whole):
            reasons.append(LOST_COMMENT)
        if reasons and safety is Safety.SAFE:
            safety = Safety.UNSAFE
        return TextFix(fix.message, whole, safety, " ".join([why, *reasons]).strip())

    def _trusted(self, rule: Rule, safety: Safety, why: str) -> tuple[Safety, str]:
        """Return the safety that the settings make of that of a rule; the narrower selector wins."""
        safe = narrowest(self.settings.extend_safe_fixes, rule)
        unsafe = narrowest(self.settings.extend_unsafe_fixes, rule)
        if safety is Safety.UNSAFE and safe > unsafe:
            return Safety.SAFE, why
        if safety is Safety.SAFE and unsafe >= max(safe, 0):
            return Safety.UNSAFE, why or DISTRUSTED
        return safety, why


def _proven(fix: Fix) -> tuple[Safety, str]:
    if fix.safety is Safety.SAFE and fix.evidence < Evidence.PROVEN:
        return Safety.UNSAFE, fix.why or INFERRED
    return fix.safety, fix.why


def is_fixable(rule: Rule, settings: FixSettings) -> bool:
    """Return whether the settings let the fixes of a rule be offered; the narrower selector wins."""
    allowed = 0 if settings.fixable is None else narrowest(settings.fixable, rule)
    return allowed > narrowest(settings.unfixable, rule)


def narrowest(selectors: Iterable[str], rule: Rule) -> int:
    """Return how narrowly the narrowest of the selectors names a rule, -1 if none does."""
    return max((narrowness(selector, rule) for selector in selectors), default=-1)


def narrowness(selector: str, rule: Rule) -> int:
    """Return how narrowly a selector (ALL, a prefix of a code, a code, a name) names a rule, -1 if it does not."""
    if selector == "ALL":
        return 0
    if selector in (rule.code, rule.name):
        return 100
    return len(selector) if rule.code.startswith(selector) else -1


def loses_comment(original: Original, edits: Sequence[TextEdit]) -> bool:
    """Return whether a comment stands in what is removed and not in what is written."""
    text = original.text
    removed = [edit.range for edit in edits if "#" in text[edit.range.start : edit.range.end]]
    if not removed:
        return False
    known = original.comments
    if known is None:
        return True
    written = "\n".join(edit.content for edit in edits)
    first = [bisect_right(known, place.start, key=lambda comment: comment.end) for place in removed]
    last = [bisect_left(known, place.end, key=lambda comment: comment.start) for place in removed]
    lost = (comment for start, end in zip(first, last, strict=True) for comment in known[start:end])
    return any(text[comment.start : comment.end] not in written for comment in lost)
