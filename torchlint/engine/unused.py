"""The finding TL001: a suppression of ours that silences nothing, and the fix that removes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchlint.diagnostic import Anchor, Diagnostic, Range, Severity, TextEdit, TextFix
from torchlint.edits.text import line_end, line_start, next_line
from torchlint.engine.selection import built_in_severity, is_built_in_fixable
from torchlint.safety import Safety
from torchlint.suppress import BUILT_IN, UNUSED

if TYPE_CHECKING:
    from torchlint.settings import Settings
    from torchlint.source import Source
    from torchlint.suppress import Unused

_FIX = "Remove the unused suppression"


def unused_suppressions(source: Source, unused: Iterable[Unused], settings: Settings) -> Iterator[Diagnostic]:
    """Yield a finding for each unused suppression."""
    severity = built_in_severity(UNUSED, settings, Severity.INFO)
    fixable = is_built_in_fixable(UNUSED, settings)
    for each in unused:
        place = each.suppression.range
        start = source.position(place.start)
        codes = ", ".join(each.codes) or "any rule"
        yield Diagnostic(
            code=UNUSED,
            name=BUILT_IN[UNUSED],
            severity=severity,
            message=f"This comment silences {codes}, which finds nothing here: remove it.",
            path=source.path,
            range=place,
            start=start,
            end=source.position(place.end),
            noqa_row=start.row,
            fix=TextFix(_FIX, (removal(source.text, each),), Safety.SAFE) if fixable else None,
            anchor=Anchor("", source.text[place.start : place.end]),
        )


def removal(text: str, unused: Unused) -> TextEdit:
    """Return the edit that removes unused codes, or the whole comment with its reason where no code is left."""
    suppression = unused.suppression
    start, end = suppression.range.start, suppression.range.end
    kept = [word for word, code in suppression.listed if code not in unused.codes]
    if kept:
        return TextEdit(suppression.range, f"# torchlint: ignore[{', '.join(kept)}]")
    first, last = line_start(text, start), line_end(text, end)
    other_comment = text.find("#", end, last)
    if other_comment >= 0:
        return TextEdit(Range(start, other_comment), "")
    before = text[first:start]
    if before.strip():
        return TextEdit(Range(start - (len(before) - len(before.rstrip())), last), "")
    return TextEdit(Range(first, next_line(text, end)), "")
