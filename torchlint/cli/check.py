"""``torchlint check``: report findings."""

from __future__ import annotations

from typing import Any

import click

from torchlint.cli import CLEAN, ERROR, FINDINGS
from torchlint.cli.help import GroupedCommand
from torchlint.cli.options import Choices, selecting_options
from torchlint.cli.reporting import reporting_options


@click.command("check", cls=GroupedCommand, short_help="Report code that wastes time.")
@selecting_options
@reporting_options
@click.option("--statistics", is_flag=True, help="Count findings by rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--show-settings", is_flag=True, help="Show settings and target for the paths, and where they come from.")
@click.option("--profile-rules", is_flag=True, help="Show the time of each stage and rule.")
@click.option("--fix", "fixing", is_flag=True, help="Apply fixes, as `torchlint fix --apply` does.")
@click.option("--diff", is_flag=True, help="Show fixes as a diff, as `torchlint fix` does.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: include unsafe fixes.")
@click.option("--max-findings", type=click.IntRange(min=0), metavar="N", help="Print the first N findings only.")
@click.option("--write-baseline", type=click.Path(dir_okay=False), metavar="FILE", help="Write all findings to a file.")
@click.option(
    "--add-ignore",
    is_flag=True,
    help="Show as a diff a comment for each finding that silences it; --apply writes them.",
)
@click.option("--apply", is_flag=True, help="With --add-ignore: write the comments to the files.")
@click.option("--watch", is_flag=True, help="Check again when files or settings change, until Ctrl-C (exit code 130).")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="With --fix: exit with 1 if anything was fixed.")
def command(
    choices: Choices,
    fixing: bool,
    diff: bool,
    unsafe_fixes: bool,
    exit_non_zero_on_fix: bool,
    write_baseline: str | None,
    add_ignore: bool,
    apply: bool,
    watch: bool,
    **options: Any,
) -> int:
    """Report code that wastes time in PyTorch programs.

    Exit code 0: nothing found, 1: findings, 2: a usage or internal error.
    """
    if apply and not add_ignore:
        raise click.UsageError(
            "--apply goes with --add-ignore; fixes are applied by --fix, or by `torchlint fix --apply`"
        )
    if watch:
        from torchlint.cli.watch import run_watch

        shows = options["show_files"] or options["show_settings"]
        if fixing or diff or add_ignore or shows or write_baseline is not None:
            raise click.UsageError("--watch checks again and again, and goes with none of the other actions")
        return run_watch(choices, **options)
    if write_baseline is not None:
        from torchlint.cli.write_baseline import run_write_baseline

        if fixing or diff or add_ignore or choices.since is not None:
            raise click.UsageError(
                "--write-baseline takes all findings, and goes with none of the other actions or --since"
            )
        return run_write_baseline(choices, write_baseline, **options)
    if add_ignore:
        from torchlint.cli.ignores import run_add_ignore

        if fixing:
            raise click.UsageError("--add-ignore and --fix contradict each other; fix first, then add the rest")
        return run_add_ignore(choices, apply=apply and not diff, **options)
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
    fails = not exit_zero and session.fails(diagnostic for _, diagnostic in report.diagnostics())
    found = FINDINGS if fails else CLEAN
    return ERROR if report.problems else session.exit_code(found)
