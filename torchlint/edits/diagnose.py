"""Findings on nodes become diagnostics on ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import libcst as cst

from torchlint.diagnostic import Diagnostic, Range, Severity, TextFix
from torchlint.edits.anchor import anchor
from torchlint.edits.locate import Locator, Parent
from torchlint.edits.plan import compatible, joined, largest_sound
from torchlint.edits.safety import FixMaker, FixSettings, narrowness
from torchlint.edits.text import line_end
from torchlint.edits.verify import Original

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.rule import Rule
    from torchlint.syntax.parse import Parsed


class DiagnoseSettings(FixSettings, Protocol):
    """The settings that findings are reported by."""

    @property
    def severity(self) -> Mapping[str, Severity]:
        """Severities by selector of rules, where they differ from a warning."""


class Diagnoser:
    """Turns findings in one file into diagnostics; what is costly is worked out at most once."""

    def __init__(self, parsed: Parsed, parent: Parent, settings: DiagnoseSettings) -> None:
        self._source = parsed.source
        self._locator = Locator(parsed, parent)
        self._settings = settings
        original = Original(parsed.source.text)
        self._fixes = FixMaker(self._locator, original, parsed.source.path, settings)

    def diagnose(self, rule: Rule, finding: Finding) -> Diagnostic:
        """Return the diagnostic of one finding.

        Raises:
            LocateError: the tree does not give the text of the file back.
        """
        owner = finding.owner or finding.node
        place = self._place(finding.node, owner)
        start, end = self._source.position(place.start), self._source.position(place.end)
        statement, only_ends = self._statement(owner, place)
        rows = self._rows(statement, only_ends=only_ends)
        return Diagnostic(
            code=rule.code,
            name=rule.name,
            severity=self._severity(rule),
            message=finding.message,
            path=self._source.path,
            range=place,
            start=start,
            end=end,
            noqa_row=rows[-1],
            fix=self._fixes.make(rule, finding.fix) if finding.fix else None,
            suppression_rows=rows,
            anchor=anchor(self._locator.enclosing(owner), self._locator.text[statement.start : statement.end]),
        )

    def _severity(self, rule: Rule) -> Severity:
        chosen = max(self._settings.severity, key=lambda selector: narrowness(selector, rule), default=None)
        if chosen is None or narrowness(chosen, rule) < 0:
            return Severity.WARNING
        return self._settings.severity[chosen]

    def _place(self, node: cst.CSTNode, owner: cst.CSTNode) -> Range:
        """Return the range that is reported: of a compound statement the header, of a module its first line."""
        if isinstance(node, cst.Module):
            return Range(0, line_end(self._locator.text, 0))
        whole = self._locator.syntactic(node, owner)
        header = self._header(node)
        return whole if header is None else Range(whole.start, header.end)

    def _header(self, node: cst.CSTNode) -> Range | None:
        """Return the range of the header of a compound statement, from its first decorator to its colon."""
        body = node.cases[0] if isinstance(node, cst.Match) else getattr(node, "body", None)
        if not isinstance(body, (cst.BaseSuite, cst.MatchCase)):
            return None
        start = self._locator.syntactic(node).start
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
            start = self._locator.syntactic(node.decorators[0], node).start
        end = self._locator.full(body, node).start
        return Range(start, start + len(self._locator.text[start:end].rstrip()))

    def _statement(self, node: cst.CSTNode, place: Range) -> tuple[Range, bool]:
        """Return where the statement of a finding stands, and whether only its ends can hold a suppression.

        This is the innermost simple statement, or the header of a compound one: there each row can.
        """
        for ancestor in self._locator.enclosing(node):
            if isinstance(ancestor, cst.BaseSmallStatement):
                return self._locator.syntactic(ancestor), True
            header = self._header(ancestor)
            if header is not None:
                return header, False
        return place, True

    def _rows(self, place: Range, *, only_ends: bool) -> tuple[int, ...]:
        """Return the rows on which a comment silences a finding."""
        first, last = self._source.position(place.start).row, self._source.position(place.end).row
        return tuple(sorted({first, last})) if only_ends else tuple(range(first, last + 1))


def diagnose(
    parsed: Parsed, parent: Parent, found: Sequence[tuple[Rule, Finding]], settings: DiagnoseSettings
) -> list[Diagnostic]:
    """Return the diagnostics of all findings in a file, in their order.

    Raises:
        LocateError: the tree does not give the text of the file back.
    """
    diagnoser = Diagnoser(parsed, parent, settings)
    return [diagnoser.diagnose(rule, finding) for rule, finding in found]


def without_broken_fixes(diagnostics: Sequence[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the diagnostics of a text, without the fixes after which it would not parse."""
    original = Original(text)
    fixes = list(dict.fromkeys(d.fix for d in diagnostics if d.fix))
    broken = set(fixes) - _sound(original, fixes) if fixes else set()
    return [d._replace(fix=None) if d.fix in broken else d for d in diagnostics]


def _sound(original: Original, fixes: Sequence[TextFix]) -> set[TextFix]:
    """Return the fixes after each of which the file parses; many are tried at once."""
    sound: set[TextFix] = set()
    waiting = list(fixes)
    while waiting:
        batch = [waiting[index] for index in compatible(waiting)]
        sound.update(largest_sound(batch, lambda some: original.parses_with(joined(some))))
        tried = set(batch)
        waiting = [fix for fix in waiting if fix not in tried]
    return sound
