"""From paths and settings to the tasks of a run: which file is checked with which rules for which target."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from torchlint.engine.cache.cards import built_in_rules, rule_words
from torchlint.engine.cache.folder import CacheFolder, cache_folder
from torchlint.engine.file import check_file
from torchlint.engine.outcome import FixOutcome
from torchlint.engine.result import FileResult, Problem, Status, failed, internal_problem, time_limit_problem
from torchlint.engine.screen import is_generated
from torchlint.engine.selection import SelectionError, check_selector, select
from torchlint.project.discovery import FoundFile, discover
from torchlint.project.patterns import ignored_selectors
from torchlint.project.target import find_target
from torchlint.semantics.target import UNKNOWN_TARGET, Target
from torchlint.settings import Settings, SettingsError, SettingsFinder
from torchlint.source import LARGEST_FILE, NOTEBOOK, Source, SourceError, read_source, source_from_text
from torchlint.suppress import BUILT_IN

if TYPE_CHECKING:
    from torchlint.engine.limits import Limits
    from torchlint.engine.steps import Steps
    from torchlint.rule import Rule, RuleWords


@dataclass(frozen=True, slots=True)
class Plan:
    """What many files have in common."""

    settings: Settings
    codes: frozenset[str]
    """Of the enabled rules."""

    target: Target

    def rules(self) -> tuple[Rule, ...]:
        """Return the enabled rules, those of plugins last.

        Raises:
            PlanError: a plugin that the settings name cannot be used.
        """
        return (
            *enabled_rules(self.codes),
            *(rule for rule in plugin_rules(self.settings) if rule.code in self.codes),
        )

    def words(self) -> Sequence[RuleWords]:
        """Return the words of all rules that the settings can speak of."""
        return (*built_in_rules(), *plugin_rules(self.settings))

    def names(self) -> dict[str, str]:
        """Return the name of each code that comments can speak of."""
        return {**{rule.code: rule.name for rule in self.words()}, **BUILT_IN}


@dataclass(frozen=True, slots=True)
class Task:
    """One file and the index of its plan."""

    path: str
    size: int
    plan: int
    stamp: tuple[int, ...] = ()
    given: bool = False
    """Whether the path itself was asked for, not found below a folder."""


@dataclass(frozen=True, slots=True)
class Planned:
    """All that is to be done, and what already went wrong."""

    plans: tuple[Plan, ...]
    tasks: tuple[Task, ...]
    """In the order of their paths."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[FileResult, ...] = ()
    output_format: str | None = None
    """What the settings of the current folder want the report to look like."""

    words: Sequence[RuleWords] = ()
    cache: CacheFolder | None = None
    """Where results may be kept, None: nowhere."""


@lru_cache(maxsize=64)
def enabled_rules(codes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the built-in rules with these codes, in the order of the codes."""
    from torchlint.registry import rules

    return tuple(rule for rule in rules() if rule.code in codes)


def plugin_rules(settings: Settings) -> tuple[Rule, ...]:
    """Return the rules of the plugins that the settings name.

    Raises:
        PlanError: one of them cannot be used.
    """
    if not settings.plugins:
        return ()
    from torchlint import plugins

    try:
        return plugins.plugin_rules(settings)
    except plugins.PluginError as error:
        raise PlanError(f"{settings.origin or 'plugins'}: {error}") from error


class PlanError(ValueError):
    """Nothing can be checked: a setting, a selector or a target is wrong."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Does tasks, in whichever process."""

    plans: tuple[Plan, ...]
    stdin: Source | None = None
    """What to check in place of files, for the path ``-``."""

    def check(self, task: Task) -> FileResult:
        """Return the result of one file; nothing is raised."""
        source = self._read(task)
        if isinstance(source, FileResult):
            return source
        plan = self.plans[task.plan]
        result = check_file(source, plan.settings, plan.rules(), plan.target)
        return replace(result, digest=source.data_digest)

    def fix(self, task: Task, *, unsafe: bool, limits: Limits | None = None) -> FixOutcome:
        """Return one file as it would be after its fixes; nothing is raised or written."""
        from torchlint.engine.fix import fix_file

        source = self._read(task)
        if isinstance(source, FileResult):
            return FixOutcome(source)
        plan = self.plans[task.plan]
        enabled = plan.rules()
        try:
            unsafe = unsafe or plan.settings.unsafe_fixes
            limit = limits.of(task.path) if limits else None
            fixed = fix_file(source, plan.settings, enabled, plan.target, unsafe=unsafe, limits=limit)
            data = source.encode(fixed.text) if fixed.text != source.text else b""
        except Exception as error:
            return FixOutcome(failed(internal_problem(task.path, "the fixer", error)))
        return FixOutcome(
            fixed.result,
            applied=fixed.applied,
            refused=fixed.refused,
            before=source.whole(source.text),
            after=source.whole(fixed.text),
            data=data,
            digest=source.data_digest,
        )

    def steps(self, task: Task, *, unsafe: bool, limits: Limits | None = None) -> Steps:
        """Return the fixes of one file, to be decided on one after the other; nothing is written.

        Raises:
            SourceError: the file cannot be read.
        """
        from torchlint.engine.steps import Steps

        source = self._read(task)
        if isinstance(source, FileResult):
            raise SourceError("; ".join(problem.message for problem in source.errors) or source.note)
        plan = self.plans[task.plan]
        check = functools.partial(check_file, settings=plan.settings, rules=plan.rules(), target=plan.target)
        limit = limits.of(task.path) if limits else None
        return Steps(source, check, unsafe=unsafe or plan.settings.unsafe_fixes, limits=limit)

    def add_ignores(self, task: Task, *, limits: Limits | None = None) -> FixOutcome:
        """Return one file as it would be with comments that silence what is found; nothing is raised or written."""
        from torchlint.engine.ignores import add_ignores
        from torchlint.syntax.parse import TimeLimitError, run_with_large_stack

        source = self._read(task)
        if isinstance(source, FileResult):
            return FixOutcome(source)
        plan = self.plans[task.plan]
        enabled = plan.rules()
        limit = limits.of(task.path) if limits else None
        check = functools.partial(check_file, settings=plan.settings, rules=enabled, target=plan.target)
        try:
            seconds = plan.settings.file_timeout
            ignored = run_with_large_stack(lambda: add_ignores(source, check, plan.names(), limit), seconds)
            data = source.encode(ignored.text) if ignored.text != source.text else b""
        except TimeLimitError:
            return FixOutcome(failed(time_limit_problem(task.path, plan.settings.file_timeout)))
        except Exception as error:
            return FixOutcome(failed(internal_problem(task.path, "adding comments", error)))
        return FixOutcome(
            ignored.result,
            applied=(*ignored.silenced, *ignored.removed),
            refused=ignored.left,
            before=source.whole(source.text),
            after=source.whole(ignored.text),
            data=data,
            digest=source.data_digest,
        )

    def _read(self, task: Task) -> Source | FileResult:
        if self.stdin is not None:
            return self.stdin
        is_notebook = task.path.endswith(NOTEBOOK)
        if task.size > LARGEST_FILE and not is_notebook:
            return FileResult(task.path, Status.SKIPPED, note=f"larger than {LARGEST_FILE // 1_000_000} MB")
        try:
            source = _notebook(task) if is_notebook else read_source(task.path)
        except SourceError as error:
            return failed(Problem(task.path, str(error).removeprefix(f"{task.path}: ")))
        except Exception as error:
            return failed(internal_problem(task.path, "reading", error))
        if isinstance(source, FileResult):
            return source
        if is_generated(source.text):
            note = "generated by a program"
            return FileResult(task.path, Status.SKIPPED, note=note, digest=source.data_digest)
        return source


def _notebook(task: Task) -> Source | FileResult:
    """Return the code of a notebook; one of another language is skipped, unless it is what was asked for.

    Raises:
        SourceError: it cannot be read, or is no notebook of Python.
    """
    from torchlint.notebook import OtherLanguageError, read_notebook

    try:
        return read_notebook(task.path)
    except OtherLanguageError as error:
        if task.given:
            raise
        return FileResult(task.path, Status.SKIPPED, note=str(error))


def make_plan(
    paths: Sequence[str],
    *,
    overrides: Mapping[str, Any],
    isolated: bool,
    config: str | None,
    cached: bool = False,
) -> Planned:
    """Return what there is to do for the paths; ``overrides`` are settings by their Python names.

    ``cached`` takes the words of the rules from the cache, where it has them.

    Raises:
        PlanError: a setting, a selector or the target is wrong.
    """
    try:
        finder = _finder(overrides, isolated=isolated, config=config)
        here = finder.for_folder(".")  # a mistake in these settings is told even if nothing is found
        folder = cache_folder(here.root or os.getcwd(), here.cache_dir) if cached else None
        planner = _Planner(finder, rule_words(folder), isolated=isolated)
        planner.codes_of(here)
        planned = planner.plan(paths)
        return replace(planned, output_format=here.output_format, cache=folder)
    except (SettingsError, SelectionError) as error:
        raise PlanError(str(error)) from error


def plan_for_stdin(
    text: str, filename: str, *, overrides: Mapping[str, Any], isolated: bool, config: str | None
) -> tuple[Source, Plan]:
    """Return the source and plan of a text that is checked as if it stood in the file.

    Raises:
        PlanError: a setting, a selector or the target is wrong.
    """
    finder = _finder(overrides, isolated=isolated, config=config)
    planner = _Planner(finder, built_in_rules(), isolated=isolated)
    try:
        found = FoundFile(filename, len(text), finder.for_file(filename))
        return _stdin_source(text, filename), planner.plan_of(found)
    except (SettingsError, SelectionError) as error:
        raise PlanError(str(error)) from error
    except SourceError as error:
        raise PlanError(f"{filename}: {error}") from error


def _stdin_source(text: str, filename: str) -> Source:
    if not filename.endswith(NOTEBOOK):
        return source_from_text(text, filename)
    from torchlint.notebook import notebook_from_bytes

    return notebook_from_bytes(text.encode("utf-8", "surrogatepass"), filename)


def _finder(overrides: Mapping[str, Any], *, isolated: bool, config: str | None) -> SettingsFinder:
    unknown = sorted(set(overrides) - {setting.name for setting in fields(Settings)})
    if unknown:
        raise PlanError(f"there is no setting {unknown[0]!r}")
    try:
        return SettingsFinder(overrides, config=config, isolated=isolated)
    except SettingsError as error:
        raise PlanError(str(error)) from error


class _Planner:
    """Gives each file its plan; files with the same settings, rules and target share one."""

    def __init__(self, finder: SettingsFinder, words: Sequence[RuleWords], *, isolated: bool) -> None:
        self._finder = finder
        self._words = words
        self._isolated = isolated
        self._plans: dict[Plan, int] = {}
        self._selected: dict[int, frozenset[str]] = {}

    def plan(self, paths: Sequence[str]) -> Planned:
        discovery = discover(paths, self._finder)
        tasks = []
        for found in discovery.files:
            plan = self.plan_of(found)
            index = self._plans.setdefault(plan, len(self._plans))
            tasks.append(Task(found.path, found.size, index, found.stamp, given=found.given))
        problems = tuple(Problem(missing.path, missing.reason) for missing in discovery.unreachable)
        warnings = (
            () if tasks or problems or discovery.excluded else ("there is no Python file in " + ", ".join(paths),)
        )
        return Planned(tuple(self._plans), tuple(tasks), problems, warnings, words=self.words())

    def words(self) -> Sequence[RuleWords]:
        """Return the words of the rules of all plans.

        Raises:
            PlanError: the plugins of two folders have a code or a name in common.
        """
        others = [rule for plan in self._plans for rule in plugin_rules(plan.settings)]
        if not others:
            return self._words
        from torchlint.plugins import PluginError, without_collisions

        try:
            return (*self._words, *without_collisions(others))
        except PluginError as error:
            raise PlanError(str(error)) from error

    def words_of(self, settings: Settings) -> Sequence[RuleWords]:
        """Return the words of the rules that the settings can speak of.

        Raises:
            PlanError: a plugin that they name cannot be used.
        """
        return (*self._words, *plugin_rules(settings)) if settings.plugins else self._words

    def plan_of(self, found: FoundFile) -> Plan:
        """Return the plan of one file."""
        codes = self.codes_of(found.settings)
        words = self.words_of(found.settings)
        ignored = ignored_selectors(found.settings, found.path)
        if ignored:
            codes -= select(words, chosen=ignored, extended=(), ignored=())
        if found.is_stub or (found.is_test and not found.settings.lint_tests):
            in_tests = {rule.code for rule in words if rule.in_tests}
            codes &= in_tests | set(BUILT_IN)
        return Plan(found.settings, codes, self._target(found))

    def codes_of(self, settings: Settings) -> frozenset[str]:
        """Return the codes of the rules that the settings enable.

        Raises:
            PlanError: a plugin that they name cannot be used.
            SelectionError: they select what is no rule.
        """
        key = id(settings)
        if key not in self._selected:
            words = self.words_of(settings)
            trusted = (*settings.extend_safe_fixes, *settings.extend_unsafe_fixes)
            for selector in (*(settings.fixable or ()), *settings.unfixable, *trusted, *settings.severity):
                check_selector(selector, words)
            self._selected[key] = select(
                words, chosen=settings.select, extended=settings.extend_select, ignored=settings.ignore
            )
        return self._selected[key]

    def _target(self, found: FoundFile) -> Target:
        if self._isolated and found.settings.target_torch is None:
            return UNKNOWN_TARGET
        return find_target(os.path.dirname(found.path), found.settings) or UNKNOWN_TARGET
