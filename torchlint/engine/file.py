"""One source to its diagnostics: screen, draft, parse, model, rules, locate, suppress."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint import suppress
from torchlint.diagnostic import Diagnostic, Position, Range, Severity
from torchlint.engine import screen, suspects, testing
from torchlint.engine.result import Excerpts, FileResult, Problem, Status, failed, internal_problem, time_limit_problem
from torchlint.engine.selection import holds_for, is_built_in_enabled
from torchlint.engine.stopwatch import Stopwatch
from torchlint.engine.unused import unused_suppressions
from torchlint.suppress import SYNTAX_ERROR, UNUSED

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.engine.suspects import Suspects
    from torchlint.finding import Finding
    from torchlint.rule import Rule
    from torchlint.semantics.model import Model
    from torchlint.semantics.process.target import Target
    from torchlint.settings import Settings
    from torchlint.source import Source
    from torchlint.syntax.draft import Draft
    from torchlint.syntax.parse import Parsed, SyntaxFailure

_MOST_EXCERPT_ROWS = 8
_ALTERED = "The file replaces something in torch or NumPy, so that their names may not mean what they say."
_NOTHING_ELSE = "nothing else was looked for in this file"
_OLD_NAME = (
    "`async` is a keyword since Python 3.7 (torch calls the argument `non_blocking`): "
    "until it has another name nothing is fixed in this file"
)
_MOST_GRAFTED = 0.8
"""The share of a file's rows of which a graft is cheaper than parsing all of it."""

_MOST_ROWS = 4_000
"""Rows that are parsed at a time: libcst's tree of more takes more memory than all else together."""


def check_file(
    source: Source,
    settings: Settings,
    rules: Sequence[Rule],
    target: Target,
    *,
    screened: bool = True,
    profiled: bool = False,
) -> FileResult:
    """Return what the rules find in the source; an exception in one rule costs its findings only.

    A file that takes longer than the settings allow has failed, unless the check is part of a call with its own limit.
    ``screened`` False parses even what cannot hold a finding, with libcst: what is found is the same. ``profiled`` asks
    each rule twice, so that the timings tell its own time from that of the model.
    """
    watch = Stopwatch(asks_twice=profiled)
    with watch.time("screen"):
        text = screen.normalised(source.text)
        uses_torch = screen.mentions_torch(text)
        enabled = [rule for rule in rules if holds_for(rule.torch, target)]
        if uses_torch and not settings.lint_tests and testing.holds_tests(source.text):
            enabled = [rule for rule in enabled if rule.in_tests]
        active = enabled if uses_torch else []
        if screened:
            active = list(screen.candidates(active, text))
        resting = not active and "torchlint" not in text and screen.is_surely_python(source.text)
    if resting and screened:
        status = Status.SCREENED if uses_torch else Status.NO_TORCH
        return FileResult(source.path, status, timings=watch.seconds)
    from torchlint.syntax.parse import TimeLimitError, run_with_large_stack

    try:
        check = _Check(source, settings, active, enabled, target, watch)
        result = run_with_large_stack(check.run_screened if screened else check.run, settings.file_timeout)
    except TimeLimitError:
        return failed(time_limit_problem(source.path, settings.file_timeout))
    except Exception as error:
        return failed(internal_problem(source.path, "the engine", error))
    if uses_torch or result.diagnostics or result.errors:
        return result
    return FileResult(source.path, Status.NO_TORCH, timings=watch.seconds)


class _Check:
    """The stages that need the tree, run where the stack is large."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        active: Sequence[Rule],
        enabled: Sequence[Rule],
        target: Target,
        watch: Stopwatch,
    ) -> None:
        self._source = source
        self._settings = settings
        self._active = active
        self._enabled = enabled
        self._target = target
        self._watch = watch
        self._errors: list[Problem] = []

    def run_screened(self) -> FileResult:
        """Return what is found, where only the rules that may fire, to judge by a draft, look at the text."""
        from torchlint.syntax.draft import draft

        if not self._active:
            return self.run()
        try:
            with self._watch.time("draft"):
                drafted = draft(self._source.text)
            model = self._model(drafted.module)
        except Exception:  # also NoDraftError: whatever it is, the whole tree shows it too or does not have it
            return self.run()
        try:
            found = suspects.find(self._active, model, self._watch.ask)
            diagnostics = self._on_filled(drafted, model, found)
        finally:
            model.release()
        if not found.rules:
            return self._result([])
        if diagnostics is None:
            diagnostics = self._on_graft(drafted, found)
        del drafted, model  # what follows may need as much memory again
        return self.run(found) if diagnostics is None else self._result(self._sound(diagnostics))

    def _on_filled(self, drafted: Draft, model: Model, found: Suspects) -> list[Diagnostic] | None:
        """Return all findings by the draft itself, once its suspect statements have their text; None if it takes more.

        So no answer is worked out twice, but for those that quote the text.
        """
        from torchlint.semantics.quoting import with_text
        from torchlint.syntax.parse import Parsed

        if not found.rules or found.parts is None or drafted.rows(found.statements) > _MOST_ROWS:
            return None
        try:
            with self._watch.time("parse"):
                drafted.fill_in(found.statements)
            return self._quoted(Parsed(self._source, drafted.module), with_text(model, self._target), found)
        except Exception:  # whatever it is, other trees show it too or do not have it
            return None

    def _on_graft(self, drafted: Draft, found: Suspects) -> list[Diagnostic] | None:
        """Return all findings by trees of which only suspect statements are parsed, None if it takes the whole."""
        if found.parts is None:
            return None
        in_batches = found.are_apart and drafted.rows(found.statements) > _MOST_ROWS
        if not in_batches and drafted.share(found.statements) > _MOST_GRAFTED:
            return None
        batches = suspects.batches(found, drafted.rows, _MOST_ROWS) if in_batches else [found.statements]
        try:
            return [d for batch in batches for d in self._on_batch(drafted, found, batch, in_batches)]
        except Exception:  # whatever it is, the whole tree shows it too or does not have it
            return None

    def _on_batch(
        self, drafted: Draft, found: Suspects, statements: Collection[int], is_one_of_several: bool
    ) -> list[Diagnostic]:
        """Return all findings by a tree of which only these statements are parsed."""
        from torchlint.syntax.parse import Parsed

        with self._watch.time("parse"):
            parsed = Parsed(self._source, drafted.grafted(statements))
        model = self._model(parsed.module)
        try:
            among = suspects.within(statements, model) if is_one_of_several else None
            return self._quoted(parsed, model, found, among)
        finally:
            model.release()

    def _quoted(
        self, parsed: Parsed, model: Model, found: Suspects, among: Callable[[cst.CSTNode], bool] | None = None
    ) -> list[Diagnostic]:
        """Return what is found on a tree of which some statements have their text, without looking at others' text."""
        from torchlint.edits.diagnose import diagnose
        from torchlint.syntax.calls import source_text_only

        with source_text_only():
            pairs = [
                (rule, finding)
                for rule in found.rules
                for finding in self._ask(rule, model, found.nodes(rule, model, among))
            ]
            with self._watch.time("locate"):
                return diagnose(parsed, model.parent, _certain(pairs, model), self._settings)

    def _sound(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        from torchlint.edits.diagnose import without_broken_fixes

        with self._watch.time("locate"):
            return without_broken_fixes(diagnostics, self._source.text)

    def run(self, found: Suspects | None = None) -> FileResult:
        """Return what all active rules find on the whole tree, or those that found something on a draft."""
        from torchlint.syntax.parse import SyntaxFailure, parse

        with self._watch.time("parse"):
            parsed = parse(self._source)
        if isinstance(parsed, SyntaxFailure):
            return self._result(self._in_old_python(parsed))
        if not self._active:
            return self._result([])
        return self._result(self._in_tree(parsed, found))

    def _in_old_python(self, failure: SyntaxFailure) -> list[Diagnostic]:
        """Return the syntax error, and where only names of old Python are one what is found beside them, unfixed."""
        from torchlint.syntax.old_python import as_written, without_old_names
        from torchlint.syntax.parse import Parsed, parse

        text = without_old_names(self._source.text) if self._active else None
        with self._watch.time("parse"):
            parsed = None if text is None else parse(replace(self._source, text=text))
        if not isinstance(parsed, Parsed):
            return [syntax_error(self._source, failure, _NOTHING_ELSE)]
        others = [d._replace(fix=None, message=as_written(d.message)) for d in self._in_tree(parsed)]
        return [syntax_error(self._source, failure, _OLD_NAME), *others]

    def _in_tree(self, parsed: Parsed, suspected: Suspects | None = None) -> list[Diagnostic]:
        """Return what the rules find on the whole tree."""
        try:
            model = self._model(parsed.module)
        except Exception as error:
            self._errors.append(internal_problem(self._source.path, "the model", error))
            return []
        try:
            rules = self._active if suspected is None else suspected.rules
            found = [(rule, findings) for rule in rules if (findings := self._findings(rule, model, suspected))]
            with self._watch.time("locate"):
                return self._diagnostics(parsed, model, found) if found else []
        finally:
            model.release()

    def _model(self, module: cst.Module) -> Model:
        from torchlint.semantics.model import Options, build_model

        with self._watch.time("model"):
            return build_model(module, self._target, Options(num_workers=self._settings.num_workers))

    def _findings(self, rule: Rule, model: Model, suspected: Suspects | None) -> list[Finding]:
        try:
            return self._ask(rule, model, None if suspected is None else suspected.nodes(rule, model))
        except Exception as error:
            self._fail(rule, error)
            return []

    def _ask(self, rule: Rule, model: Model, only: Sequence[cst.CSTNode] | None) -> list[Finding]:
        return self._watch.ask(rule.code, lambda: [finding for _, finding in suspects.run_rule(rule, model, only)])

    def _diagnostics(self, parsed: Parsed, model: Model, found: list[tuple[Rule, list[Finding]]]) -> list[Diagnostic]:
        """Return all findings at their places; where that fails, those of the rules for which it does not."""
        from torchlint.edits.diagnose import diagnose
        from torchlint.edits.locate import LocateError

        try:
            pairs = [(rule, finding) for rule, findings in found for finding in findings]
            return self._sound(diagnose(parsed, model.parent, _certain(pairs, model), self._settings))
        except LocateError as error:
            if len(found) == 1:
                self._errors.append(Problem(self._source.path, f"no place for what {found[0][0].code} finds: {error}"))
                return []
        except Exception as error:
            if len(found) == 1:
                self._fail(found[0][0], error)
                return []
        return [diagnostic for pair in found for diagnostic in self._diagnostics(parsed, model, [pair])]

    def _fail(self, rule: Rule, error: Exception) -> None:
        self._errors.append(internal_problem(self._source.path, f"rule {rule.code} {rule.name}", error))

    def _result(self, found: list[Diagnostic]) -> FileResult:
        with self._watch.time("suppress"):
            enabled = {rule.code for rule in self._enabled}
            outcome = suppress.apply(self._source, sorted(set(found), key=place), enabled, self._known_names())
            kept = [*outcome.kept, *self._unused(outcome)]
        kept.sort(key=place)
        if outcome.skip_file:
            note = "they say `torchlint: skip-file`"
            return FileResult(self._source.path, Status.SKIPPED, note=note, warnings=outcome.warnings)
        return FileResult(
            self._source.path,
            Status.CHECKED if self._active else Status.SCREENED,
            tuple(kept),
            suppressed=len(outcome.suppressed),
            warnings=outcome.warnings,
            errors=tuple(self._errors),
            excerpts=excerpts(self._source, kept),
            cells=self._source.cells() if kept else (),
            timings=self._watch.seconds,
        )

    def _known_names(self) -> Mapping[str, str] | None:
        """Return the name of each code that comments may speak of, None for those of torchlint alone."""
        if not self._settings.plugins:
            return None
        from torchlint.plugins import known_names

        return known_names(self._settings)

    def _unused(self, outcome: suppress.Outcome) -> list[Diagnostic]:
        """Return the suppressions that silence nothing, unless an error may be the reason for that."""
        path = self._source.path
        if not outcome.unused or self._errors or not is_built_in_enabled(UNUSED, self._settings, path):
            return []
        return list(unused_suppressions(self._source, outcome.unused, self._settings))


def _certain(pairs: list[tuple[Rule, Finding]], model: Model) -> list[tuple[Rule, Finding]]:
    """Return the findings, without fixes where another file binds names, without safe ones where libraries are altered.

    What another file binds is not certain enough to rewrite.
    """
    from torchlint.finding import Safety
    from torchlint.semantics.references.monkeypatches import alters_libraries

    if model.names.by_convention:
        return [(rule, replace(finding, fix=None)) for rule, finding in pairs]
    fixes = [finding.fix for _, finding in pairs]
    if all(fix is None or fix.safety is Safety.UNSAFE for fix in fixes) or not alters_libraries(model):
        return pairs
    unsafe = [fix and replace(fix, safety=Safety.UNSAFE, why=fix.why or _ALTERED) for fix in fixes]
    return [(rule, replace(finding, fix=fix)) for (rule, finding), fix in zip(pairs, unsafe, strict=True)]


def place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    """Return the key by which the findings of a file are sorted."""
    return diagnostic.range.start, diagnostic.range.end, diagnostic.code


def syntax_error(source: Source, failure: SyntaxFailure, consequence: str) -> Diagnostic:
    """Return the finding about a file that cannot be parsed, and what follows from that."""
    start = Position(failure.row, failure.column)
    offset = source.offset(start)
    return Diagnostic(
        SYNTAX_ERROR,
        suppress.BUILT_IN[SYNTAX_ERROR],
        Severity.ERROR,
        f"{failure.message}; {consequence}.",
        source.path,
        Range(offset, offset),
        start,
        start,
        failure.row,
    )


def excerpts(source: Source, diagnostics: Iterable[Diagnostic]) -> Excerpts:
    """Return the lines and positions that reports of these findings show."""
    rows: set[int] = set()
    edits: list[Range] = []
    for diagnostic in diagnostics:
        last = min(diagnostic.end.row, diagnostic.start.row + _MOST_EXCERPT_ROWS)
        rows.update(range(max(1, diagnostic.start.row - 1), last + 1))
        rows.add(diagnostic.end.row)
        edits += [edit.range for edit in diagnostic.fix.edits] if diagnostic.fix else []
    if not rows:
        return Excerpts()
    lines = source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    offsets = {offset for edit in edits for offset in (edit.start, edit.end)}
    positions = {offset: source.position(offset) for offset in sorted(offsets)}
    for edit in edits:
        rows.update(range(positions[edit.start].row, positions[edit.end].row + 1))
    shown = {row: source.shown(lines[row - 1]) for row in sorted(rows) if row <= len(lines)}
    return Excerpts({row: line for row, line in shown.items() if line is not None}, positions)
