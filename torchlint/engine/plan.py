"""From paths and settings to the tasks of a run: which file is checked with which rules for which target."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from torchlint.engine.cache.folder import CacheFolder, cache_folder
from torchlint.engine.result import FileResult, Problem
from torchlint.engine.selection import SelectionError, check_selector, select
from torchlint.project.discovery import FoundFile, discover
from torchlint.project.patterns import ignored_selectors
from torchlint.project.target import find_target
from torchlint.registry import rules_of
from torchlint.registry import words as built_in_words
from torchlint.semantics.process.target import UNKNOWN_TARGET, Target
from torchlint.settings import Settings, SettingsError, SettingsFinder
from torchlint.source import NOTEBOOK, Source, SourceError, source_from_bytes, source_from_text
from torchlint.suppress import BUILT_IN

if TYPE_CHECKING:
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
            *rules_of(self.codes),
            *(rule for rule in plugin_rules(self.settings) if rule.code in self.codes),
        )

    def words(self) -> Sequence[RuleWords]:
        """Return the words of all rules that the settings can speak of."""
        return (*built_in_words(), *plugin_rules(self.settings))

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


def make_plan(
    paths: Sequence[str],
    *,
    overrides: Mapping[str, Any],
    isolated: bool,
    config: str | None,
    cached: bool = False,
) -> Planned:
    """Return what there is to do for the paths; ``overrides`` are settings by their Python names.

    ``cached`` looks for the folder of the cache.

    Raises:
        PlanError: a setting, a selector or the target is wrong.
    """
    try:
        finder = _finder(overrides, isolated=isolated, config=config)
        here = finder.for_folder(".")  # a mistake in these settings is told even if nothing is found
        folder = cache_folder(here.root or os.getcwd(), here.cache_dir) if cached else None
        planner = _Planner(finder, built_in_words(), isolated=isolated)
        planner.codes_of(here)
        planned = planner.plan(paths)
        return replace(planned, output_format=here.output_format, cache=folder)
    except (SettingsError, SelectionError) as error:
        raise PlanError(str(error)) from error


def plan_for_stdin(
    content: str | bytes, filename: str, *, overrides: Mapping[str, Any], isolated: bool, config: str | None
) -> tuple[Source, Plan]:
    """Return the source and plan of a content that is checked as if it stood in the file.

    Bytes are decoded as those of a file.

    Raises:
        PlanError: a setting, a selector or the target is wrong.
    """
    finder = _finder(overrides, isolated=isolated, config=config)
    planner = _Planner(finder, built_in_words(), isolated=isolated)
    try:
        found = FoundFile(filename, len(content), finder.for_file(filename))
        return _stdin_source(content, filename), planner.plan_of(found)
    except (SettingsError, SelectionError) as error:
        raise PlanError(str(error)) from error
    except SourceError as error:
        raise PlanError(f"{filename}: {error}") from error


def _stdin_source(content: str | bytes, filename: str) -> Source:
    if not filename.endswith(NOTEBOOK):
        if isinstance(content, str):
            return source_from_text(content, filename)
        return source_from_bytes(content, filename)
    from torchlint.notebook import notebook_from_bytes

    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return notebook_from_bytes(data, filename)


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
            with self._origin_of(found.settings):
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
            with self._origin_of(settings):
                for selector in (*(settings.fixable or ()), *settings.unfixable, *trusted, *settings.severity):
                    check_selector(selector, words)
                self._selected[key] = select(
                    words, chosen=settings.select, extended=settings.extend_select, ignored=settings.ignore
                )
        return self._selected[key]

    @contextmanager
    def _origin_of(self, settings: Settings) -> Iterator[None]:
        """Let the error about a selector say which file it stands in, unless the command line has it."""
        try:
            yield
        except SelectionError as error:
            if not settings.origin or self._finder.is_given(error.selector):
                raise
            raise SelectionError(f"{settings.origin}: {error}", error.selector) from error

    def _target(self, found: FoundFile) -> Target:
        if self._isolated and found.settings.target_torch is None:
            return UNKNOWN_TARGET
        return find_target(os.path.dirname(found.path), found.settings) or UNKNOWN_TARGET
