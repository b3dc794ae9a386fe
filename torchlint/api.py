"""The functions for programs: check and fix text, check paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchlint.diagnostic import Diagnostic
from torchlint.engine.many import Work, run_many
from torchlint.engine.plan import Plan, Task, Worker, make_plan, plan_for_stdin
from torchlint.engine.result import FileResult, Problem, failed
from torchlint.source import Source


@dataclass(frozen=True, slots=True)
class FixedSource:
    """A text with its fixes applied."""

    text: str
    applied: tuple[Diagnostic, ...]
    """In the order of application; each range is that in the text of its pass."""

    refused: tuple[tuple[Diagnostic, str], ...]
    """Findings whose fix could not be applied, and why."""

    remaining: tuple[Diagnostic, ...]
    """What is found in the fixed text."""

    def __str__(self) -> str:
        return self.text


def check_source(
    text: str,
    *,
    filename: str = "<string>",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    target_torch: str | None = None,
    **settings: Any,
) -> list[Diagnostic]:
    """Return what is found in a text, by place. No configuration is read and no file is touched.

    Args:
        text: the program.
        filename: the path that diagnostics carry; a test file's name switches the performance rules off.
        select: codes, prefixes, names or ``ALL``; None for the default set.
        ignore: rules not to apply.
        target_torch: the oldest torch version that the program supports ("2.1"); None: what the text proves.
        settings: further settings by their Python names, such as ``num_workers`` or ``lint_tests``.

    Raises:
        ValueError: a selector, the target or a setting is unknown.
    """
    from torchlint.engine.file import check_file

    source, plan = _plan(text, filename, _given(settings, select, ignore, target_torch))
    return list(check_file(source, plan.settings, plan.rules(), plan.target).diagnostics)


def fix_source(
    text: str,
    *,
    unsafe_fixes: bool = False,
    filename: str = "<string>",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    target_torch: str | None = None,
    **settings: Any,
) -> FixedSource:
    """Return a text with the fixes of what `check_source` finds applied: the safe ones, or the unsafe ones too.

    Raises:
        ValueError: a selector, the target or a setting is unknown.
    """
    from torchlint.engine.fix import fix_file

    source, plan = _plan(text, filename, _given(settings, select, ignore, target_torch))
    fixed = fix_file(source, plan.settings, plan.rules(), plan.target, unsafe=unsafe_fixes)
    return FixedSource(fixed.text, fixed.applied, fixed.refused, fixed.result.diagnostics)


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    target_torch: str | None = None,
    isolated: bool = False,
    jobs: int = 1,
    **settings: Any,
) -> list[FileResult]:
    """Return the result of each file named or found below the paths, as ``torchlint check`` would find them.

    ``isolated`` ignores all configuration. A program that sets ``jobs`` above 1 needs an
    ``if __name__ == "__main__"`` guard, as all of multiprocessing does. A path that does not exist gives a result with
    errors.

    Raises:
        ValueError: a selector, the target or a setting is unknown.
    """
    overrides = _given(settings, select, ignore, target_torch)
    planned = make_plan([os.fspath(path) for path in paths], overrides=overrides, isolated=isolated, config=None)
    work: Work[Task, FileResult] = Work(Worker(planned.plans).check, size=_size, on_death=_died)
    results = run_many(work, planned.tasks, jobs=jobs)
    broken = [failed(problem) for problem in planned.problems]
    return sorted((*results, *planned.skipped, *broken), key=lambda result: result.path)


def _plan(text: str, filename: str, overrides: Mapping[str, Any]) -> tuple[Source, Plan]:
    return plan_for_stdin(text, filename, overrides=overrides, isolated=True, config=None)


def _given(
    settings: Mapping[str, Any], select: Sequence[str] | None, ignore: Sequence[str], target_torch: str | None
) -> dict[str, Any]:
    given = {**settings, "ignore": tuple(ignore)}
    if select is not None:
        given["select"] = tuple(select)
    if target_torch is not None:
        given["target_torch"] = target_torch
    return given


def _size(task: Task) -> int:
    return task.size


def _died(task: Task, code: int | None) -> FileResult:
    return failed(Problem(task.path, "the process that checked this file died"))
