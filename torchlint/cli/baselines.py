"""``--baseline``: findings that are known and may wait."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torchlint.engine.limits import removable
from torchlint.engine.result import FileResult, Status
from torchlint.project.baseline import Baseline, BaselineError, read_baseline
from torchlint.report.data import plural

if TYPE_CHECKING:
    from torchlint.engine.plan import Planned


def find_baselines(planned: Planned) -> dict[str, Baseline]:
    """Return the baseline of each file to check that has one.

    Raises:
        click.ClickException: one cannot be read.
    """
    known: dict[str, Baseline] = {}
    found = {}
    for task in planned.tasks:
        settings = planned.plans[task.plan].settings
        if settings.baseline:
            path = os.path.join(settings.root, settings.baseline)
            if path not in known:
                known[path] = read(path)
            found[task.path] = known[path]
    return found


def read(path: str) -> Baseline:
    """Return the baseline in a file.

    Raises:
        click.ClickException: it cannot be read.
    """
    try:
        return replace(read_baseline(shown_path(path)), path=os.path.abspath(path))
    except BaselineError as error:
        raise click.ClickException(str(error)) from error


def shown_path(path: str) -> str:
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
            shown = shown_path(baseline.path)
            yield f"Baseline {shown}: {' and '.join(words)}; --write-baseline {shown} drops what is not needed."
