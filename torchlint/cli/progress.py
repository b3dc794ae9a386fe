"""A bar on long runs, on a terminal only."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 0.7
"""Seconds before a run counts as long."""

_BETWEEN_DRAWINGS = 0.1


class ProgressBar:
    """Counts files done; drawn without a thread, since processes may still be forked."""

    def __init__(self, total: int, words: str, *, enabled: bool) -> None:
        self._total = total
        self._words = words
        self._enabled = enabled and sys.stderr.isatty()
        self._done = 0
        self._next = monotonic() + _PATIENCE
        self._progress: Progress | None = None

    def advance(self) -> None:
        """Count one more file as done."""
        self._done += 1
        if not self._enabled or monotonic() < self._next:
            return
        if self._progress is None:
            self._progress = self._start()
        self._progress.update(self._progress.task_ids[0], completed=self._done)
        self._progress.refresh()
        self._next = monotonic() + _BETWEEN_DRAWINGS

    def close(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(self._words), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        progress.add_task("", total=self._total)
        progress.start()
        return progress
