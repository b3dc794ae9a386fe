"""``--baseline`` and ``--write-baseline``: findings that are known and may wait."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN
from torchlint.engine.limits import removable
from torchlint.engine.result import FileResult, Status
from torchlint.project.baseline import Baseline, BaselineError, Entry, counted, missing, read_baseline, write_baseline
from torchlint.report.data import plural
from torchlint.suppress import SYNTAX_ERROR

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.engine.plan import Planned, Task


def find_baselines(planned: Planned) -> dict[str, Baseline]:
    """Return the baseline of each file to check that has one.

    Raises:
        click.ClickException: one cannot be read.
    """
    read: dict[str, Baseline] = {}
    found = {}
    for task in planned.tasks:
        settings = planned.plans[task.plan].settings
        if settings.baseline:
            path = os.path.join(settings.root, settings.baseline)
            if path not in read:
                read[path] = _read(path)
            found[task.path] = read[path]
    return found


def _read(path: str) -> Baseline:
    try:
        return replace(read_baseline(_shown(path)), path=os.path.abspath(path))
    except BaselineError as error:
        raise click.ClickException(str(error)) from error


def _shown(path: str) -> str:
    """Return a path as people read it: relative where it lies below the current folder."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def baseline_notes(planned: Planned, baselines: Mapping[str, Baseline], results: Sequence[FileResult]) -> Iterator[str]:
    """Yield, for each baseline, how many of its findings are no longer there."""
    codes = {task.path: planned.plans[task.plan].codes for task in planned.tasks}
    left: Counter[str] = Counter()
    for result in results:
        baseline = baselines.get(result.path)
        if baseline is not None and result.status is not Status.FAILED and not result.errors:
            known = baseline.entries(result.path)
            left[baseline.path] += removable(result, known, codes[result.path])
    for baseline in {baseline.path: baseline for baseline in baselines.values()}.values():
        gone = baseline.gone()
        orphans = sum(sum(baseline.files[name].values()) for name in gone)
        words = []
        if left[baseline.path]:
            words.append(f"{plural(left[baseline.path], 'finding')} no longer there")
        if gone:
            words.append(f"{plural(orphans, 'finding')} in {plural(len(gone), 'file')} that was renamed or removed")
        if words:
            shown = _shown(baseline.path)
            yield f"Baseline {shown}: {' and '.join(words)}; --write-baseline {shown} drops what is not needed."


def run_write_baseline(choices: Choices, path: str, *, exit_zero: bool, **options: Any) -> int:
    """Write all findings to the baseline and return the exit code."""
    from torchlint.cli.session import STDIN, Session

    if STDIN in choices.paths:
        raise click.UsageError("--write-baseline needs files: it cannot be used with `-` (standard input)")
    before = _read(path) if os.path.exists(path) else Baseline(os.path.abspath(path))
    everything = {**(choices.settings or {}), "baseline": ""}
    session = Session(replace(choices, settings=everything), **options)
    report = session.check()
    session.complain(report)
    after = updated(before, looked_at(session.planned, report.results))
    try:
        write_baseline(after)
    except BaselineError as error:
        raise click.ClickException(str(error)) from error
    dropped = sum(missing(entries, after.files.get(name, {})) for name, entries in before.files.items())
    tail = f"; {plural(dropped, 'entry', 'entries')} of before dropped" if dropped else ""
    written = f"{plural(after.total(), 'finding')} in {plural(len(after.files), 'file')}"
    session.output.note(
        f"Wrote {written} to {_shown(after.path)}{tail}. "
        f"Use it with --baseline {path}, or set baseline in the settings."
    )
    return session.exit_code(CLEAN)


def looked_at(planned: Planned, results: Iterable[FileResult]) -> Iterator[tuple[FileResult, frozenset[str]]]:
    """Yield the results of the files that could be checked, with the codes that were looked for."""
    tasks: dict[str, Task] = {task.path: task for task in planned.tasks}
    for result in results:
        if result.path in tasks and result.status is not Status.FAILED and not result.errors:
            yield result, planned.plans[tasks[result.path].plan].codes | {SYNTAX_ERROR}


def updated(before: Baseline, checked: Iterable[tuple[FileResult, frozenset[str]]]) -> Baseline:
    """Return the baseline with what was found; what was not looked for stays as it was, files that are gone go."""
    gone = set(before.gone())
    files: dict[str, Mapping[Entry, int]] = {name: known for name, known in before.files.items() if name not in gone}
    for result, codes in checked:
        name = before.name(result.path)
        others = {key: count for key, count in files.pop(name, {}).items() if key.code not in codes}
        if found := {**others, **counted(result.diagnostics)}:
            files[name] = found
    return replace(before, files=files)
