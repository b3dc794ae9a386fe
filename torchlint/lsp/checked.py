"""A text as it stands in an editor, checked as ``torchlint check`` checks the file."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.limits import FileLimits, Limits, Scope
from torchlint.engine.many import paused_collector
from torchlint.engine.plan import Plan, PlanError, plan_for_stdin
from torchlint.engine.result import FileResult, Status, failed, time_limit_problem
from torchlint.engine.screen import is_generated
from torchlint.engine.worker import GENERATED, TOO_LARGE
from torchlint.project.baseline import BaselineError, read_baseline
from torchlint.project.patterns import Patterns
from torchlint.project.target import project_target
from torchlint.rule import Rule
from torchlint.settings import Settings
from torchlint.source import LARGEST_FILE, Source, source_from_text
from torchlint.syntax.parse import TimeLimitError, run_with_large_stack

_EXAMPLE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"


@dataclass(frozen=True, slots=True)
class Checked:
    """What is found in a text, and what it takes to fix it."""

    source: Source
    result: FileResult
    plan: Plan | None = None
    """None: nothing was looked for."""

    limits: FileLimits | None = None
    """What a baseline knows already."""

    troubles: tuple[str, ...] = ()
    """What kept it from being checked as it should, one line each."""

    def rules(self) -> dict[str, Rule]:
        """Return the rules that were looked for, by their codes."""
        return {rule.code: rule for rule in self.plan.rules()} if self.plan else {}

    def at(self, start: int, end: int) -> list[Diagnostic]:
        """Return the findings that touch a stretch of the text."""
        return [found for found in self.result.diagnostics if found.range.start <= end and start <= found.range.end]


def check_text(text: str, path: str, is_wanted: Callable[[], bool]) -> Checked:
    """Return what is found in a text that stands for the file; settings and requirements are read afresh.

    A check that is no longer wanted is given up.
    """
    project_target.cache_clear()
    try:
        source, plan = plan_for_stdin(text, path, overrides={}, isolated=False, config=None)
        note = _left_out(source, plan.settings)
        if note:
            return Checked(source, FileResult(path, Status.SKIPPED, note=note))
        limits = _limits(plan.settings, path)
        result = _result(source, plan, is_wanted)
    except (PlanError, BaselineError) as error:
        return Checked(source_from_text(text, path), FileResult(path, Status.FAILED), troubles=(str(error),))
    troubles = tuple(str(problem) for problem in result.errors)
    return Checked(source, limits.applied(result), plan, limits.of(path), troubles)


def warm_up() -> None:
    """Import all that checking takes, by a check: later ones can be given up anywhere but within an import."""
    source, plan = plan_for_stdin(_EXAMPLE, "example.py", overrides={}, isolated=True, config=None)
    check_file(source, plan.settings, plan.rules(), plan.target)


def _result(source: Source, plan: Plan, is_wanted: Callable[[], bool]) -> FileResult:
    seconds = plan.settings.file_timeout
    check = functools.partial(check_file, source, plan.settings, plan.rules(), plan.target)
    try:
        with paused_collector() as collect:
            result = run_with_large_stack(check, seconds, is_wanted)
            collect()
    except TimeLimitError:
        return failed(time_limit_problem(source.path, seconds))
    return result


def _left_out(source: Source, settings: Settings) -> str:
    """Return why the text is not to be checked, empty if it is."""
    excluded = Patterns((*settings.exclude, *settings.extend_exclude), settings.root or ".")
    if excluded.match(os.path.abspath(source.path)):
        return "excluded by the settings"
    if len(source.text) > LARGEST_FILE:
        return TOO_LARGE
    return GENERATED if is_generated(source.text) else ""


def _limits(settings: Settings, path: str) -> Limits:
    if not settings.baseline:
        return Limits()
    baseline = read_baseline(os.path.join(settings.root, settings.baseline))
    return Limits({path: baseline.entries(path)})


@dataclass(frozen=True, slots=True)
class OneFinding(FileLimits):
    """Limits that let one finding count, by its code and offset, and no other that was there before."""

    code: str
    start: int

    def scope(self, source: Source, diagnostics: Sequence[Diagnostic]) -> Scope:
        """Return the scope that holds all the others."""
        places = {(diagnostic.code, diagnostic.range.start) for diagnostic in diagnostics}
        return Scope(frozenset(places - {(self.code, self.start)}))


def one_finding(finding: Diagnostic) -> OneFinding:
    """Return the limits that let this finding count and no other."""
    return OneFinding({}, None, finding.code, finding.range.start)
