"""``torchlint fix --interactive``: each fix with its diff, applied if wanted; what is accepted is written at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN, ERROR, FINDINGS, INTERRUPTED
from torchlint.report.diff import styled_diff
from torchlint.report.full import heading, offer, one_line
from torchlint.report.styled import NOTE

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.cli.session import Session
    from torchlint.diagnostic import Diagnostic
    from torchlint.engine.outcome import FixOutcome
    from torchlint.engine.steps import Proposal, Steps

KEYS = {
    "y": "apply this fix",
    "n": "leave this one as it is",
    "a": "apply this fix and all others of this rule",
    "d": "leave all of this rule as they are",
    "q": "quit; what was applied stays applied",
    "?": "show this help",
}
_END_OF_INPUT = ("\x04", "\x1a")


class _QuitError(Exception):
    """No more is to be asked."""


def run_interactive(
    choices: Choices, *, unsafe: bool, exit_zero: bool, exit_non_zero_on_fix: bool, **options: Any
) -> int:
    """Ask about each fix, write what is accepted, and return the exit code."""
    from torchlint.cli.fix_account import account
    from torchlint.cli.session import STDIN, Session

    if STDIN in choices.paths or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--interactive asks on a terminal, and there is none; use --apply to write all fixes")
    session = Session(choices, **options)
    outcomes = session.fix(unsafe=unsafe)
    report = session.make_report(outcome.result for outcome in outcomes)
    session.complain(report)
    dialogue = _Dialogue(session, outcomes, unsafe=unsafe)
    code = CLEAN
    try:
        for outcome in outcomes:
            if outcome.changed:
                dialogue.ask_about(outcome)
    except KeyboardInterrupt:
        code = INTERRUPTED
        session.output.text("\n")
    except _QuitError:
        pass
    after = dialogue.outcomes()
    written = [outcome for outcome in after if outcome.applied]
    session.output.aside(account(after, written, apply=True, unsafe=unsafe))
    if code == INTERRUPTED:
        session.output.note("interrupted; what was accepted is written")
        return code
    remaining = session.fails(diagnostic for outcome in after for diagnostic in outcome.result.diagnostics)
    found = bool(remaining and not exit_zero) or bool(written and exit_non_zero_on_fix)
    return ERROR if report.problems else session.exit_code(FINDINGS if found else CLEAN)


class _Dialogue:
    """What was answered so far, and what became of the files."""

    def __init__(self, session: Session, outcomes: Sequence[FixOutcome], *, unsafe: bool) -> None:
        from torchlint.engine.worker import Worker

        self._session = session
        self._unsafe = unsafe
        self._worker = Worker(session.planned.plans)
        self._tasks = {task.path: task for task in session.planned.tasks}
        self._outcomes = {outcome.path: _as_found(outcome) for outcome in outcomes}
        self._report = session.make_report(())
        self._total = sum(len(outcome.applied) for outcome in outcomes)
        self._asked = 0
        self._always: set[str] = set()
        self._never: set[str] = set()

    def outcomes(self) -> list[FixOutcome]:
        """Return what became of each file."""
        return list(self._outcomes.values())

    def ask_about(self, outcome: FixOutcome) -> None:
        """Offer the fixes of one file and write those that are accepted.

        Raises:
            _QuitError: nothing more is to be asked.
        """
        from torchlint.source import SourceError

        path = outcome.path
        try:
            steps = self._worker.steps(self._tasks[path], unsafe=self._unsafe, limits=self._session.limits)
            if steps.digest != outcome.digest:
                raise SourceError("the file changed after it was read; run again")
        except SourceError as error:
            self._session.fail(f"{path}: {error}")
            return
        try:
            self._go_through(path, steps)
        except SourceError as error:
            self._session.fail(f"{path}: not written: {error}")
        finally:
            self._outcomes[path] = steps.outcome()

    def _go_through(self, path: str, steps: Steps) -> None:
        from torchlint.source import write_atomically

        while proposal := steps.propose():
            self._asked += 1
            if self._wants(proposal):
                write_atomically(path, proposal.data, steps.digest)
                steps.accept(proposal)
            else:
                steps.decline(proposal)

    def _wants(self, proposal: Proposal) -> bool:
        """Return whether to apply a fix: what was said of its rule holds, or else is asked for."""
        code = proposal.diagnostic.code
        if code in self._never:
            return False
        if code in self._always:
            self._show(proposal)
            self._session.output.text("Applied, as all of this rule.\n\n")
            return True
        self._show(proposal)
        answer = self._answer(proposal.diagnostic)
        if answer == "q":
            raise _QuitError
        (self._always if answer == "a" else self._never if answer == "d" else set()).add(code)
        return answer in ("y", "a")

    def _show(self, proposal: Proposal) -> None:
        found = proposal.diagnostic
        line = heading(self._report, proposal.result, found)
        lines = [[*line, (f"  [{self._asked} of {max(self._asked, self._total)}]", "dim")]]
        lines += [[(NOTE, "gutter"), (one_line(found.message), "")], *offer(found)]
        diff = styled_diff(proposal.before, proposal.after, self._report.shown(found.path))
        self._session.output.lines([*lines, *list(diff)[2:]])

    def _answer(self, found: Diagnostic) -> str:
        """Return the key of the answer, as soon as one is pressed that has a meaning."""
        question = f"Apply this fix of {found.code}? [{','.join(KEYS)}] "
        while True:
            self._session.output.text(question)
            try:
                key = click.getchar().lower()
            except EOFError:
                key = "q"
            key = "q" if key in _END_OF_INPUT else key
            self._session.output.text((key if key in KEYS else "") + "\n")
            if key in KEYS and key != "?":
                return key
            self._session.output.lines([[(f"  {name}  ", "strong"), (means, "")] for name, means in KEYS.items()])


def _as_found(outcome: FixOutcome) -> FixOutcome:
    """Return the outcome for a file that was not touched: all that could be fixed is still there."""
    found = (*outcome.applied, *outcome.result.diagnostics)
    return replace(
        outcome, applied=(), after=outcome.before, data=b"", result=replace(outcome.result, diagnostics=found)
    )
