"""The fixes of one file: check, plan, apply, verify, and again until nothing is left to do."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torchlint.diagnostic import Diagnostic, Range, TextEdit, TextFix
from torchlint.edits.orphans import removals
from torchlint.edits.plan import compatible, joined, largest_sound
from torchlint.edits.text import Places, Shift, apply_edits, merged
from torchlint.edits.verify import Original
from torchlint.engine.limits import Scope
from torchlint.engine.surroundings import Surroundings
from torchlint.finding import Safety
from torchlint.registry import rules_of
from torchlint.suppress import SYNTAX_ERROR, UNUSED

if TYPE_CHECKING:
    from torchlint.engine.limits import FileLimits
    from torchlint.engine.result import FileResult
    from torchlint.rule import Rule
    from torchlint.semantics.process.target import Target
    from torchlint.settings import Settings
    from torchlint.source import Source

MOST_PASSES = 8
"""Passes that may leave as many fixes to do as they found; passes that leave fewer come to an end by themselves."""


@dataclass(frozen=True, slots=True)
class FixResult:
    """What the fixes made of one file."""

    text: str
    result: FileResult
    """What is found in the text as it is now."""

    applied: tuple[Diagnostic, ...] = ()
    """In the order of application; ranges are those in the text of their pass."""

    refused: tuple[tuple[Diagnostic, str], ...] = ()
    """Findings whose fix failed a check, with the reason; ranges are those in the text of their pass."""


def fix_file(
    source: Source,
    settings: Settings,
    rules: Sequence[Rule],
    target: Target,
    *,
    unsafe: bool,
    check: Callable[[Source, Settings, Sequence[Rule], Target], FileResult] | None = None,
    limits: FileLimits | None = None,
) -> FixResult:
    """Return the file with its fixes applied; each is applied as a whole or not at all.

    Findings that do not count within the ``limits`` are neither fixed nor reported.
    If the fixes do not come to an end, the file stays as it was and the rules are named; if they take longer than the
    settings allow, the file stays as it was and has failed.
    """
    from torchlint.engine.file import check_file
    from torchlint.engine.result import failed, time_limit_problem
    from torchlint.syntax.parse import TimeLimitError, run_with_large_stack

    checked = check or check_file
    run = functools.partial(FixRun, source, lambda some: checked(some, settings, rules, target), unsafe, limits)
    try:
        return run_with_large_stack(lambda: run().run(), settings.file_timeout)
    except TimeLimitError:
        return FixResult(source.text, failed(time_limit_problem(source.path, settings.file_timeout)))


class FixRun:
    """The passes over one file."""

    def __init__(
        self, source: Source, check: Callable[[Source], FileResult], unsafe: bool, limits: FileLimits | None
    ) -> None:
        self._first = self._source = source
        self._check = check
        self._unsafe = unsafe
        self._before = self._result = check(source)
        self._scope = limits.scope(source, self._before.diagnostics) if limits else Scope()
        self._before = self._counted(self._before)
        self._original = Original(source.text)
        self._surroundings = Surroundings(check)
        self._asked: dict[tuple[str, int], str] = {}
        """What the other files say against fixes, by their place as it is now: each is asked for once."""
        self._applied: list[Diagnostic] = []
        self._refused: dict[tuple[str, int], tuple[Diagnostic, str]] = {}
        self._reasons: dict[Diagnostic, str] = {}
        self._is_changed = False
        self._attempt: tuple[tuple[TextEdit, ...], FileResult] | None = None

    def run(self) -> FixResult:
        """Return the file after as many passes as there is something to do."""
        passes, fewest = 0, None
        while todo := list(self._todo()) or self._second_chance():
            if fewest is None or len(todo) < fewest:
                fewest = len(todo)
            elif passes == MOST_PASSES:
                return self._unchanged(todo)
            passes += 1
            self._pass(todo)
        if self._applied:
            self._remove_orphans()
        return self.fixed()

    def fixed(self) -> FixResult:
        """Return the file as it is now."""
        return FixResult(
            self._source.text, self._counted(self._result), tuple(self._applied), tuple(self._refused.values())
        )

    def _counted(self, result: FileResult) -> FileResult:
        """Return the result with the findings that count."""
        return replace(result, diagnostics=tuple(d for d in result.diagnostics if self._scope.counts(d)))

    def _second_chance(self) -> list[Diagnostic]:
        """Return what was refused before the text became what it is: fixing again must find nothing to do."""
        if not self._refused or not self._is_changed:
            return []
        self._refused.clear()
        self._is_changed = False
        return list(self._todo())

    def _todo(self) -> Iterator[Diagnostic]:
        for diagnostic in self._result.diagnostics:
            key = (diagnostic.code, diagnostic.range.start)
            if self._is_wanted(diagnostic) and key not in self._refused and self._scope.counts(diagnostic):
                yield diagnostic

    def _is_wanted(self, diagnostic: Diagnostic) -> bool:
        """Return whether a finding has a fix that is to be applied."""
        wanted = (Safety.SAFE, Safety.UNSAFE) if self._unsafe else (Safety.SAFE,)
        return diagnostic.fix is not None and diagnostic.fix.safety in wanted

    def _pass(self, todo: Sequence[Diagnostic]) -> None:
        todo = [diagnostic for diagnostic in todo if not self._is_opposed(diagnostic)]
        batch = [todo[index] for index in compatible(_fixes(todo))]
        sound = largest_sound(batch, self._is_sound)
        accepted = set(sound)
        for diagnostic in batch:
            if diagnostic not in accepted and diagnostic in self._reasons:
                key = (diagnostic.code, diagnostic.range.start)
                self._refused[key] = (diagnostic, self._reasons[diagnostic])
        if sound and self._is_sound(sound) and self._attempt:
            self._applied += sound
            self._accept(*self._attempt)

    def _is_opposed(self, diagnostic: Diagnostic) -> bool:
        """Return whether another file of the project speaks against a fix, which is then refused."""
        key = (diagnostic.code, diagnostic.range.start)
        if key not in self._asked:
            found = self._result.diagnostics
            self._asked[key] = self._surroundings.objection(self._source, diagnostic, found)
        if self._asked[key]:
            self._refused[key] = (diagnostic, self._asked[key])
        return bool(self._asked[key])

    def _accept(self, edits: tuple[TextEdit, ...], result: FileResult) -> None:
        shift = Shift(edits)
        self._refused = {(code, shift.offset(start)): value for (code, start), value in self._refused.items()}
        self._asked = {(code, shift.offset(start)): said for (code, start), said in self._asked.items()}
        self._scope = self._scope.after(edits, shift)
        self._source = replace(self._source, text=apply_edits(self._source.text, edits))
        self._original = Original(self._source.text)
        self._result = result
        self._attempt = None
        self._is_changed = True

    def _is_sound(self, batch: Sequence[Diagnostic]) -> bool:
        """Return whether the fixes together pass every check, and keep what was found after them."""
        edits = joined(_fixes(batch))
        if self._attempt and self._attempt[0] == edits:
            return True
        reason = self._original.broken_by(edits)
        if not reason:
            result = self._check(replace(self._source, text=apply_edits(self._source.text, edits)))
            reason = _failure(self._result, result, batch, Shift(edits), self._is_wanted)
            if not reason:
                self._attempt = (edits, result)
                return True
        if len(batch) == 1:
            self._reasons[batch[0]] = reason
        return False

    def _remove_orphans(self) -> None:
        """Remove imports that the fixes left without use only together."""
        used = Original(self._first.text)
        while edits := self._orphans(used):
            self._accept(edits, self._check(replace(self._source, text=apply_edits(self._source.text, edits))))

    def _orphans(self, used: Original) -> tuple[TextEdit, ...]:
        names = {name for name in used.uses if not self._original.uses[name]}
        of_module = {name for name in used.uses_of_module - self._original.uses_of_module if self._original.uses[name]}
        orphans = [
            *removals(self._original, self._source.path, names),
            *removals(self._original, self._source.path, of_module, of_module_only=True),
        ]
        edits = merged(orphan.edit for orphan in orphans if self._unsafe or not orphan.risk) or ()
        return () if edits and self._original.broken_by(edits) else edits

    def _unchanged(self, todo: Sequence[Diagnostic]) -> FixResult:
        names = ", ".join(sorted({f"{d.code} {d.name}" for d in (*self._applied, *todo)}))
        reason = f"the fixes of {names} do not come to an end; the file stays as it was"
        refused = tuple((d, reason) for d in self._before.diagnostics if d.fix)
        return FixResult(self._first.text, self._before, (), refused)


def _fixes(diagnostics: Sequence[Diagnostic]) -> list[TextFix]:
    return [diagnostic.fix for diagnostic in diagnostics if diagnostic.fix]


def _failure(
    before: FileResult,
    after: FileResult,
    batch: Sequence[Diagnostic],
    shift: Shift,
    is_wanted: Callable[[Diagnostic], bool],
) -> str:
    """Return what is wrong with the findings after the fixes of a batch, empty if all is well.

    A new finding of another rule whose fix is wanted too is none: the next pass has it. Nor is one of a rule that was
    silent because the rule of the fix spoke.
    """
    if len(after.errors) > len(before.errors):
        return "checking the result fails"
    if any(d.code == SYNTAX_ERROR for d in after.diagnostics):
        return "the result does not parse"
    old_findings, fixed, new_findings = _Findings(before.diagnostics), _Findings(batch), _Findings(after.diagnostics)
    lasting = _Findings([diagnostic for diagnostic in after.diagnostics if not is_wanted(diagnostic)])
    for diagnostic in batch:
        edited = [edit.range for edit in diagnostic.fix.edits] if diagnostic.fix else []
        old = [diagnostic.range, *edited]
        new = [Range(shift.offset(place.start), shift.end(place.end)) for place in old]
        expected = old_findings.codes(old)
        expected.subtract(fixed.codes(old))
        found = new_findings.codes(new)
        if found[diagnostic.code] > expected[diagnostic.code]:
            return "the finding is still there after the fix"
        remaining = lasting.codes(new)
        fresh = sorted(code for code in remaining if remaining[code] > expected[code] and code != UNUSED)
        fresh = [code for code in fresh if not _yields(code, diagnostic.code)]
        if fresh:
            return f"the fix leads to a new finding of {fresh[0]}"
    return ""


def _yields(code: str, other: str) -> bool:
    """Return whether a rule keeps silent where the other one speaks."""
    return any(other in rule.yields_to for rule in rules_of(frozenset((code,))))


class _Findings:
    """Findings by where they stand."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        ordered = sorted(diagnostics, key=lambda diagnostic: diagnostic.range)
        self._codes = [diagnostic.code for diagnostic in ordered]
        self._places = Places([diagnostic.range for diagnostic in ordered])

    def codes(self, places: Sequence[Range]) -> Counter[str]:
        """Return how many findings of each code lie in one of the places."""
        return Counter(self._codes[index] for index in {i for place in places for i in self._places.overlapping(place)})
