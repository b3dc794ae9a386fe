"""``torchlint check``: report findings."""

from __future__ import annotations

from typing import Any

import click

from torchlint.cli import CLEAN, ERROR, FINDINGS
from torchlint.cli.options import Choices, selecting_options
from torchlint.report.formats import FORMATS


@click.command("check", short_help="Report code that wastes time.")
@selecting_options
@click.option("--output-format", type=click.Choice(FORMATS), metavar="FORMAT", help=", ".join(FORMATS))
@click.option("--output-file", "-o", type=click.Path(dir_okay=False), help="Write the report to a file.")
@click.option("--statistics", is_flag=True, help="Count findings by rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--show-settings", is_flag=True, help="Show settings and target for the paths, and where they come from.")
@click.option("--profile-rules", is_flag=True, help="Show the time of each stage and rule.")
@click.option("--fix", "fixing", is_flag=True, help="Apply fixes, as `torchlint fix --apply` does.")
@click.option("--diff", is_flag=True, help="Show fixes as a diff, as `torchlint fix` does.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: include unsafe fixes.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="With --fix: exit with 1 if anything was fixed.")
def command(
    choices: Choices, fixing: bool, diff: bool, unsafe_fixes: bool, exit_non_zero_on_fix: bool, **options: Any
) -> int:
    """Report code that wastes time in PyTorch programs.

    Exit code 0: nothing found, 1: findings, 2: a usage or internal error.
    """
    if fixing or diff:
        from torchlint.cli.fix import run_fix

        return run_fix(
            choices,
            apply=fixing and not diff,
            unsafe=unsafe_fixes,
            exit_non_zero_on_fix=exit_non_zero_on_fix,
            **options,
        )
    return run_check(choices, **options)


def run_check(choices: Choices, *, exit_zero: bool, **options: Any) -> int:
    """Check what the choices say, report, and return the exit code."""
    from torchlint.cli.session import Session

    session = Session(choices, **options)
    if session.show_only():
        return session.exit_code(CLEAN)
    report = session.check()
    session.report(report)
    found = FINDINGS if report.by_code and not exit_zero else CLEAN
    return ERROR if report.problems else session.exit_code(found)
