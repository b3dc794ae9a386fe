"""``torchlint fix``: show the fixes as a diff, or apply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import CLEAN, ERROR, FINDINGS
from torchlint.cli.fix_account import account
from torchlint.cli.help import GroupedCommand
from torchlint.cli.options import Choices, selecting_options

if TYPE_CHECKING:
    from torchlint.cli.session import Session
    from torchlint.engine.outcome import FixOutcome
    from torchlint.report.data import Report


@click.command("fix", cls=GroupedCommand, short_help="Show the fixes as a diff, or apply them with --apply.")
@selecting_options
@click.option("--apply", is_flag=True, help="Write the fixes to the files.")
@click.option("--interactive", "-i", is_flag=True, help="Ask about each fix; what you accept is written at once.")
@click.option("--unsafe-fixes", is_flag=True, help="Include fixes that could change what can be observed.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="When writing: exit with 1 if anything was fixed.")
def command(
    choices: Choices, apply: bool, interactive: bool, unsafe_fixes: bool, exit_non_zero_on_fix: bool, **options: Any
) -> int:
    """Show the fixes as a diff; nothing is written without --apply or --interactive.

    Exit code 0: nothing to do, 1: a diff was shown (when writing: findings remain), 2: an error.
    """
    if interactive:
        from torchlint.cli.interactive import run_interactive

        return run_interactive(choices, unsafe=unsafe_fixes, exit_non_zero_on_fix=exit_non_zero_on_fix, **options)
    return run_fix(
        choices, apply=apply, unsafe=unsafe_fixes, exit_non_zero_on_fix=exit_non_zero_on_fix, listing=False, **options
    )


def run_fix(
    choices: Choices,
    *,
    apply: bool,
    unsafe: bool,
    exit_non_zero_on_fix: bool,
    exit_zero: bool,
    listing: bool = True,
    **options: Any,
) -> int:
    """Fix what the choices say, tell what was done and what was not, and return the exit code.

    ``listing`` also reports the findings that remain.
    """
    from torchlint.cli.session import STDIN, Session

    session = Session(choices, **options)
    if session.show_only():
        return session.exit_code(CLEAN)
    outcomes = session.fix(unsafe=unsafe)
    report = session.make_report(outcome.result for outcome in outcomes)
    changed = [outcome for outcome in outcomes if outcome.changed]
    written = write_or_show(session, report, outcomes, apply=apply)
    if listing and apply and STDIN not in choices.paths:
        session.report(report)
    else:
        session.complain(report)
    writes = "--fix in place of --diff" if listing else "--apply"
    session.output.aside(account(outcomes, written, apply=apply, unsafe=unsafe, writes=writes))
    if apply:
        remaining = session.fails(d for outcome in outcomes for d in outcome.result.diagnostics)
        found = bool(remaining and not exit_zero) or bool(written and exit_non_zero_on_fix)
    else:
        found = not exit_zero and session.fails(d for outcome in changed for d in outcome.applied)
    return ERROR if report.problems else session.exit_code(FINDINGS if found else CLEAN)


def write_or_show(session: Session, report: Report, outcomes: Sequence[FixOutcome], *, apply: bool) -> list[FixOutcome]:
    """Write the files that changed, or show the diff, and return those that are, or would be, written."""
    from torchlint.cli.session import STDIN

    changed = [outcome for outcome in outcomes if outcome.changed]
    if STDIN in session.choices.paths and apply:
        for outcome in outcomes:
            session.output.data(outcome.data if outcome.changed else session.stdin)
        return changed
    if apply:
        return _write(session, changed)
    _show(session, report, changed)
    return changed


def _write(session: Session, changed: Sequence[FixOutcome]) -> list[FixOutcome]:
    from torchlint.source import SourceError, write_atomically

    written = []
    for outcome in changed:
        try:
            write_atomically(outcome.path, outcome.data, outcome.digest)
        except (SourceError, OSError) as error:
            session.fail(f"{outcome.path}: not written: {error}")
        else:
            written.append(outcome)
    return written


def _show(session: Session, report: Report, changed: Sequence[FixOutcome]) -> None:
    from torchlint.report.diff import diff, styled_diff

    for outcome in changed:
        shown = report.shown(outcome.path)
        if session.output.coloured:
            session.output.lines(styled_diff(outcome.before, outcome.after, shown))
        else:
            session.output.text(diff(outcome.before, outcome.after, shown))
