"""``--write-baseline``: take note of all findings, so that they may wait."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN
from torchlint.cli.baselines import read, shown_path
from torchlint.cli.session import STDIN, Session
from torchlint.engine.result import FileResult, Status
from torchlint.project.baseline import Baseline, BaselineError, Entry, counted, missing, write_baseline
from torchlint.report.data import plural
from torchlint.suppress import SYNTAX_ERROR

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.engine.plan import Planned, Task


def run_write_baseline(choices: Choices, path: str, *, exit_zero: bool, **options: Any) -> int:
    """Write all findings to the baseline and return the exit code."""
    if STDIN in choices.paths:
        raise click.UsageError("--write-baseline needs files: it cannot be used with `-` (standard input)")
    before = read(path) if os.path.exists(path) else Baseline(os.path.abspath(path))
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
        f"Wrote {written} to {shown_path(after.path)}{tail}. "
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
