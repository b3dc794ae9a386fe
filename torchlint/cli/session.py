"""One run of a command: settings and files, results, the report, the exit code."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchlint.atomic import write_output
from torchlint.cli import ERROR
from torchlint.cli.output import Output
from torchlint.cli.progress import ProgressBar
from torchlint.engine.cache.identity import run_name
from torchlint.engine.cache.results import ResultCache, check_with, completed
from torchlint.engine.limits import Limits
from torchlint.engine.many import Work, run_many
from torchlint.engine.outcome import FixOutcome
from torchlint.engine.plan import PlanError, Planned, Task, make_plan, plan_for_stdin
from torchlint.engine.result import FileResult, Problem, failed
from torchlint.engine.worker import Worker
from torchlint.report import summary
from torchlint.report.data import Report, plural
from torchlint.report.formats import DEFAULT_FORMAT, FORMATS, MACHINE_FORMATS, machine_format, text_format
from torchlint.source import Source
from torchlint.version import __version__

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.diagnostic import Diagnostic
    from torchlint.project.baseline import Baseline
    from torchlint.rule import RuleWords

STDIN = "-"


class Session:
    """Everything between the arguments and the exit code of ``check``."""

    def __init__(
        self,
        choices: Choices,
        *,
        stdin_filename: str | None = None,
        jobs: int | None = None,
        no_cache: bool = False,
        color: str = "auto",
        quiet: bool = False,
        verbose: bool = False,
        output_format: str | None = None,
        output_file: str | None = None,
        statistics: bool = False,
        show_files: bool = False,
        show_settings: bool = False,
        profile_rules: bool = False,
        max_findings: int | None = None,
    ) -> None:
        self.choices = choices
        self.output = Output(colour=color, quiet=quiet, verbose=verbose)
        self.jobs = jobs
        self.no_cache = no_cache
        self.output_file = output_file
        self.statistics = statistics
        self.profile_rules = profile_rules
        self.max_findings = max_findings
        self._show_files = show_files
        self._show_settings = show_settings
        self._stdin_filename = stdin_filename
        self.stdin = b""
        self._stdin_source: Source | None = None
        self.planned = self._plan()
        self.baselines = self._baselines()
        self.limits = Limits({path: baseline.entries(path) for path, baseline in self.baselines.items()})
        if choices.since is not None:
            self._limit_to_changes(choices.since)
        self.output_format = output_format or self.planned.output_format or DEFAULT_FORMAT
        if self.output_format not in FORMATS:
            raise click.UsageError(f"the settings ask for output format {self.output_format!r}, which there is not")
        self._failed = bool(self.planned.problems)
        for problem in self.planned.problems:
            self.output.error(str(problem))
        for warning in self.planned.warnings:
            self.output.warning(warning)

    def _plan(self) -> Planned:
        if STDIN in self.choices.paths and len(self.choices.paths) > 1:
            raise click.UsageError("`-` (standard input) cannot be combined with other paths")
        isolated, config = self.choices.isolated, self.choices.config
        try:
            if STDIN not in self.choices.paths:
                return make_plan(
                    self.choices.paths,
                    overrides=self.choices.overrides(),
                    isolated=isolated,
                    config=config,
                    cached=not (self.no_cache or self.profile_rules),
                )
            self.stdin, name = read_stdin(), self._stdin_filename or STDIN
            self._stdin_source, plan = plan_for_stdin(
                self.stdin, name, overrides=self.choices.overrides(), isolated=isolated, config=config
            )
            return Planned((plan,), (Task(name, len(self.stdin), 0),), words=plan.words())
        except PlanError as error:
            raise click.ClickException(str(error)) from error

    def _baselines(self) -> dict[str, Baseline]:
        """Return the baseline of each file that has one."""
        if not any(plan.settings.baseline for plan in self.planned.plans):
            return {}
        from torchlint.cli.baselines import find_baselines

        return find_baselines(self.planned)

    def _limit_to_changes(self, revision: str) -> None:
        """Leave out the files without changes since the revision, and what did not change in the others."""
        if STDIN in self.choices.paths:
            raise click.UsageError("--since compares files with git: it cannot be used with `-` (standard input)")
        from torchlint.project.changes import ChangesError, changes_since

        try:
            changes = changes_since(revision, [task.path for task in self.planned.tasks])
        except ChangesError as error:
            raise click.ClickException(str(error)) from error
        tasks = tuple(task for task in self.planned.tasks if task.path in changes)
        count = plural(len(self.planned.tasks), "file")
        self.output.note(f"Changed since {revision}: {len(tasks):,} of {count}.")
        self.planned = replace(self.planned, tasks=tasks)
        self.limits = replace(self.limits, changes=changes)

    def show_only(self) -> bool:
        """Print files or settings if that is all that is asked for."""
        if self._show_files:
            self.output.text("".join(os.path.abspath(task.path) + "\n" for task in self.planned.tasks))
        if self._show_settings:
            from torchlint.cli.show_settings import settings_lines

            self.output.lines(settings_lines(self.planned))
        return self._show_files or self._show_settings

    def check(self) -> Report:
        """Check all files and return the results."""
        tasks = self.planned.tasks
        bar = ProgressBar(len(tasks), "checking", enabled=not self.output.quiet)
        worker = Worker(self.planned.plans, self._stdin_source, profiled=self.profile_rules)
        work: Work[Task, FileResult] = Work(worker.check, size=task_size, on_death=died)

        def run(some: Sequence[Task]) -> list[FileResult]:
            return run_many(work, some, jobs=self.jobs, on_result=lambda result: bar.advance())

        try:
            cache = self._cache()
            results = check_with(cache, tasks, run) if cache else run(tasks)
        finally:
            bar.close()
        if self.baselines:
            from torchlint.cli.baselines import baseline_notes

            for note in baseline_notes(self.planned, self.baselines, results):
                self.output.note(note)
        return self.make_report(map(self.limits.applied, results))

    def _cache(self) -> ResultCache | None:
        """Return the results of former runs with these options, None where none are to be used."""
        planned, isolated, config = self.planned, self.choices.isolated, self.choices.config
        if planned.cache is None:
            return None
        name = run_name(self.choices.given(), isolated=isolated, config=config)
        return ResultCache(planned.cache, name, planned.plans, planned.words)

    def fix(self, *, unsafe: bool) -> list[FixOutcome]:
        """Return every file as it would be after its fixes; nothing is written."""
        worker = Worker(self.planned.plans, self._stdin_source)
        return self._change("fixing", functools.partial(worker.fix, unsafe=unsafe, limits=self.limits))

    def add_ignores(self) -> list[FixOutcome]:
        """Return every file as it would be with a comment for each finding; nothing is written."""
        worker = Worker(self.planned.plans, self._stdin_source)
        return self._change("commenting", functools.partial(worker.add_ignores, limits=self.limits))

    def _change(self, doing: str, function: Callable[[Task], FixOutcome]) -> list[FixOutcome]:
        bar = ProgressBar(len(self.planned.tasks), doing, enabled=not self.output.quiet)
        work: Work[Task, FixOutcome] = Work(
            function, size=task_size, on_death=lambda task, code: FixOutcome(died(task, code))
        )

        def run(some: Sequence[Task]) -> list[FixOutcome]:
            return run_many(work, some, jobs=self.jobs, on_result=lambda outcome: bar.advance())

        try:
            tasks, cache = self.planned.tasks, self._cache()
            return completed(tasks, cache.find_clean, FixOutcome, run) if cache else run(tasks)
        finally:
            bar.close()

    def make_report(self, results: Iterable[FileResult]) -> Report:
        """Return the report over the results; what was left out while looking for files counts too."""
        everything = sorted((*results, *self.planned.skipped), key=lambda result: result.path)
        plans = [self.planned.plans[task.plan] for task in self.planned.tasks]
        targets = Counter(f"{plan.target} ({plan.target.origin})" for plan in plans)
        return Report(
            tuple(everything),
            __version__,
            str(Path.cwd()),
            rule_table(self.planned.words),
            dict(targets),
            self.choices.repeated(),
        )

    def report(self, report: Report) -> None:
        """Write the report and the notes about what went wrong."""
        shown, more = (report, 0) if self.max_findings is None else report.limited(self.max_findings)
        if self.output_format in MACHINE_FORMATS:
            self._machine_report(report if self.statistics else shown)
        else:
            self._text_report(report, shown)
        if more and not self.statistics:
            self.output.note(f"... and {plural(more, 'more finding')} (--max-findings {self.max_findings}).")
        self.complain(report)
        if self.profile_rules:
            from torchlint.cli.profile import profile_lines

            self.output.note("\n".join(profile_lines(report)))

    def _machine_report(self, report: Report) -> None:
        counted = self.statistics and self.output_format == "json"
        text = summary.statistics_json(report) if counted else machine_format(self.output_format)(report)
        if self.output_file is None:
            self.output.text(text)
        else:
            write_report(self.output_file, text)
        if self.output_format == "sarif":
            self._tell_strays(report)

    def _tell_strays(self, report: Report) -> None:
        from torchlint.report.sarif import strays

        paths = strays(report)
        if paths:
            self.fail(
                f"{plural(len(paths), 'file')} with results outside the repository (first: {paths[0]}): the report has "
                "absolute URIs for them, which code scanning does not show; run torchlint in the repository they are in"
            )

    def _text_report(self, report: Report, shown: Report) -> None:
        lines = summary.statistics(report) if self.statistics else text_format(self.output_format)(shown)
        if self.output_file is not None:
            from torchlint.report.styled import plain

            write_report(self.output_file, plain(lines))
        else:
            self.output.lines(lines)
        if not self.output.quiet and report.results and not self.statistics:
            self.output.lines(summary.lines(report))

    def complain(self, report: Report) -> None:
        """Print what kept files from being checked, one line each."""
        for result in report.results:
            for warning in result.warnings:
                self.output.warning(warning)
            for problem in result.errors:
                self.output.error(f"{report.shown(problem.path)}: {problem.message}")
                if self.output.verbose and problem.details:
                    sys.stderr.write(problem.details)
        if report.problems:
            self._failed = True

    def fail(self, message: str) -> None:
        """Print what went wrong and exit with 2 in the end."""
        self.output.error(message)
        self._failed = True

    def fails(self, diagnostics: Iterable[Diagnostic]) -> bool:
        """Return whether any of the findings is of a severity that makes the exit code 1."""
        plans = {task.path: self.planned.plans[task.plan] for task in self.planned.tasks}
        return any(found.severity.reaches(plans[found.path].settings.fail_level) for found in diagnostics)

    def exit_code(self, otherwise: int) -> int:
        """Return the exit code: 2 if anything went wrong."""
        return ERROR if self._failed else otherwise


def read_stdin() -> bytes:
    """Return what stands on standard input.

    Raises:
        click.UsageError: it is closed.
    """
    if sys.stdin is None:
        raise click.UsageError("there is nothing to read for `-`: standard input is closed")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise click.UsageError(f"cannot read standard input: {error}") from error


def task_size(task: Task) -> int:
    """Return how much work a task is."""
    return task.size


def died(task: Task, code: int | None) -> FileResult:
    """Return the result of a file that killed the process that checked it."""
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return failed(Problem(task.path, f"the process that checked this file died ({how}); the file was left out"))


def rule_table(words: Iterable[RuleWords]) -> dict[str, RuleWords]:
    """Return what reports say about each rule."""
    return {rule.code: rule for rule in words}


def write_report(path: str, text: str) -> None:
    """Write a report to a file.

    Raises:
        click.ClickException: the file cannot be written.
    """
    try:
        write_output(path, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise click.ClickException(f"cannot write the report to {path}: {error.strerror or error}") from error
