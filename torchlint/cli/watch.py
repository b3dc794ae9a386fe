"""``torchlint check --watch``: check again whenever a file or the settings changed.

Changes are found by looking for the files anew, as each run does. That is what excludes, ignore files and settings
mean, needs nothing of the operating system, and works on network drives and in containers; the system's watchers would
also watch data sets and checkpoints. Looking takes a tenth of the time, a little more in the largest repositories.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN, INTERRUPTED
from torchlint.project.discovery import stamp
from torchlint.report.data import plural

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.cli.output import Output
    from torchlint.engine.plan import Planned, Task

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.3, 2.0
_PAUSE_PER_LOOK = 9
"""How many times as long as looking to wait before the next look."""

_SETTLING = 0.1
"""Seconds without a change after which a change counts as complete: editors and git write in several steps."""

_MOST_SETTLING = 50
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class State:
    """All that the findings depend on, as it is now."""

    planned: Planned | None = None
    baselines: tuple[tuple[int, ...], ...] = ()
    error: str = ""
    """What is wrong with the settings."""

    seconds: float = field(default=0.0, compare=False)
    """That it took to find this out."""

    def files(self) -> dict[str, Task]:
        """Return the files by their paths."""
        return {task.path: task for task in self.planned.tasks} if self.planned else {}


def run_watch(choices: Choices, *, exit_zero: bool, **options: Any) -> int:
    """Check now and after each change, until an interrupt or until nobody reads; return the exit code.

    ``exit_zero`` changes nothing: the only ends are an interrupt and a reader who left.

    Raises:
        click.ClickException: something is wrong from the start; later mistakes in settings are told and waited out.
    """
    from torchlint.cli.session import STDIN, Session

    if STDIN in choices.paths:
        raise click.UsageError("--watch waits for files to change: it cannot be used with `-` (standard input)")
    gc.enable()  # a single run does without, this one goes on
    state, reason = look(choices), ""
    if state.error:
        raise click.ClickException(state.error)
    try:
        while True:
            click.clear()  # does so on a terminal only
            try:
                session = Session(choices, **options)
                _tell(session.output, reason)
                session.report(session.check())
                _tell(session.output, f"Watching {plural(len(state.files()), 'file')} for changes; Ctrl-C stops.")
                if session.output.closed:
                    return CLEAN
            except click.ClickException as error:
                if not reason:  # what was wrong from the start may be the command line, which cannot change
                    raise
                click.echo(f"error: {error.format_message()}; waiting for a change, Ctrl-C stops", err=True)
            before, state = state, _changed(choices, state)
            reason = f"{time.strftime('%H:%M:%S')} {'; '.join(differences(before, state))}"
    except KeyboardInterrupt:
        return INTERRUPTED


def look(choices: Choices) -> State:
    """Return how files and settings are now."""
    from torchlint.engine.plan import PlanError, make_plan
    from torchlint.project.target import project_target

    start = time.monotonic()
    project_target.cache_clear()
    try:
        planned = make_plan(
            choices.paths, overrides=choices.overrides(), isolated=choices.isolated, config=choices.config
        )
    except PlanError as error:
        return State(error=str(error), seconds=time.monotonic() - start)
    configured = [plan.settings for plan in planned.plans if plan.settings.baseline]
    names = {os.path.join(settings.root, settings.baseline or "") for settings in configured}
    return State(planned, tuple(map(_stamp, sorted(names))), seconds=time.monotonic() - start)


def differences(before: State, after: State) -> Iterator[str]:
    """Yield in words what changed, a few names at most."""
    if before.planned is None or after.planned is None:
        yield "the settings changed"
        return
    old, new = before.files(), after.files()
    changed = [path for path, task in new.items() if path in old and task.stamp != old[path].stamp]
    groups = {
        "changed": changed,
        "new": [path for path in new if path not in old],
        "gone": [path for path in old if path not in new],
    }
    for what, paths in groups.items():
        named = ", ".join(os.path.relpath(path) for path in paths[:_MOST_NAMED])
        more = f" and {plural(len(paths) - _MOST_NAMED, 'more file')}" if len(paths) > _MOST_NAMED else ""
        if paths:
            yield f"{what}: {named}{more}"
    if not any(groups.values()):
        yield "the settings changed"


def _changed(choices: Choices, state: State) -> State:
    """Return how things are once they are different, and have stayed so for a moment."""
    now, pause = state, _SHORTEST_PAUSE
    while now == state:
        time.sleep(pause)
        now = look(choices)
        pause = min(max(_SHORTEST_PAUSE, _PAUSE_PER_LOOK * now.seconds), _LONGEST_PAUSE)
    for _ in range(_MOST_SETTLING):
        time.sleep(_SETTLING)
        last, now = now, look(choices)
        if now == last:
            break
    return now


def _stamp(path: str) -> tuple[int, ...]:
    try:
        return stamp(os.stat(path))
    except OSError:
        return ()


def _tell(output: Output, message: str) -> None:
    if message:
        output.note(message)
