"""The functions for programs: check and fix text, check paths."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchlint.diagnostic import Diagnostic
from torchlint.engine.limits import Limits
from torchlint.engine.many import Work, run_many
from torchlint.engine.plan import Plan, Task, make_plan, plan_for_stdin
from torchlint.engine.result import FileResult, Problem, Status, failed
from torchlint.engine.worker import Worker
from torchlint.project.baseline import BaselineError, read_baseline
from torchlint.settings import Settings
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
    isolated: bool = True,
    **settings: Any,
) -> list[Diagnostic]:
    """Return what is found in a text, by place. No file is touched, and unless told otherwise none is read.

    A rule that fails gives a RuntimeWarning and no findings.

    Args:
        text: the program, or the JSON of a notebook.
        filename: the path that diagnostics carry. The name of a test file switches the performance rules off, and
            ``.ipynb`` makes the text a notebook.
        select: codes, prefixes, names or ``ALL``; None for the default set.
        ignore: rules not to apply.
        target_torch: the oldest torch version that the program supports ("2.1"); None: as configured, or else the
            oldest that torchlint knows.
        isolated: False reads configuration, baseline and requirements of the folder that ``filename`` is in, as
            ``torchlint check`` does; what is given here comes on top.
        settings: further settings by their Python names, such as ``num_workers``, ``per_file_ignores``, ``lint_tests``.

    Raises:
        ValueError: a selector, the target, a setting or the configuration is wrong.
        RuntimeError: the text could not be checked at all.
    """
    from torchlint.engine.file import check_file

    source, plan = _plan(text, filename, _given(settings, select, ignore, target_torch), isolated)
    result = _sound(check_file(source, plan.settings, plan.rules(), plan.target))
    return list(_limits([(filename, plan.settings)]).applied(result).diagnostics)


def fix_source(
    text: str,
    *,
    unsafe_fixes: bool = False,
    filename: str = "<string>",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    target_torch: str | None = None,
    isolated: bool = True,
    **settings: Any,
) -> FixedSource:
    """Return a text with the fixes of what `check_source` finds applied: the safe ones, or the unsafe ones too.

    The arguments and the exceptions are those of `check_source`.
    """
    from torchlint.engine.fix import fix_file

    source, plan = _plan(text, filename, _given(settings, select, ignore, target_torch), isolated)
    unsafe = unsafe_fixes or plan.settings.unsafe_fixes
    limits = _limits([(filename, plan.settings)]).of(filename)
    fixed = fix_file(source, plan.settings, plan.rules(), plan.target, unsafe=unsafe, limits=limits)
    remaining = _sound(fixed.result).diagnostics
    return FixedSource(source.whole(fixed.text), fixed.applied, fixed.refused, remaining)


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

    A file that cannot be checked and a path that does not exist give a result with errors. A program that sets ``jobs``
    above 1 needs an ``if __name__ == "__main__"`` guard, as all of multiprocessing does.

    Args:
        paths: files and folders.
        select: codes, prefixes, names or ``ALL``; None for what is configured.
        ignore: rules not to apply, on top of those that are configured.
        target_torch: the oldest torch version that the programs support; None: as configured, or else the oldest.
        isolated: True reads no configuration, baseline and requirements.
        jobs: processes to use.
        settings: further settings by their Python names.

    Raises:
        ValueError: a selector, the target, a setting or the configuration is wrong.
    """
    overrides = _given(settings, select, ignore, target_torch)
    planned = make_plan([os.fspath(path) for path in paths], overrides=overrides, isolated=isolated, config=None)
    work: Work[Task, FileResult] = Work(Worker(planned.plans).check, size=_size, on_death=_died)
    limits = _limits([(task.path, planned.plans[task.plan].settings) for task in planned.tasks])
    results = map(limits.applied, run_many(work, planned.tasks, jobs=jobs))
    broken = [failed(problem) for problem in planned.problems]
    return sorted((*results, *planned.skipped, *broken), key=lambda result: result.path)


def _plan(text: str, filename: str, overrides: Mapping[str, Any], isolated: bool) -> tuple[Source, Plan]:
    return plan_for_stdin(text, filename, overrides=overrides, isolated=isolated, config=None)


def _limits(files: Iterable[tuple[str, Settings]]) -> Limits:
    """Return what the baselines know of these files.

    Raises:
        ValueError: a baseline cannot be read.
    """
    named = [(path, os.path.join(each.root, each.baseline)) for path, each in files if each.baseline]
    try:
        read = {name: read_baseline(name) for _, name in named}
    except BaselineError as error:
        raise ValueError(str(error)) from error
    return Limits({path: read[name].entries(path) for path, name in named})


def _sound(result: FileResult) -> FileResult:
    """Return a result after a warning about each rule that failed.

    Raises:
        RuntimeError: there is none.
    """
    for problem in result.errors:
        if result.status is Status.FAILED:
            raise RuntimeError(str(problem))
        warnings.warn(str(problem), RuntimeWarning, stacklevel=3)
    return result


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
