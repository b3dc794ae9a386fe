"""``torchlint verify``: the user's own program before and after the fixes."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from torchlint.atomic import write_output
from torchlint.cli import CLEAN, ERROR, FINDINGS, INTERRUPTED
from torchlint.cli.options import joined, listed
from torchlint.cli.reporting import writable_path
from torchlint.harness.devices import cpu_model
from torchlint.harness.errors import HarnessError
from torchlint.harness.guardian import guarded_folder
from torchlint.harness.verify.changes import Fixes, collect
from torchlint.harness.verify.compare import Metric
from torchlint.harness.verify.project import Sandbox, find_project
from torchlint.harness.verify.report import Account, lines, markdown
from torchlint.harness.verify.run import Runner
from torchlint.harness.verify.study import Investigation
from torchlint.source import SourceError, write_atomically


class _Verify(click.Command):
    """A command whose arguments end at ``--``; what follows is a command line of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put what follows the first ``--`` aside, then parse the rest."""
        ctx.meta["words"] = list(args)
        place = args.index("--") if "--" in args else len(args)
        ctx.meta["command"] = args[place + 1 :]
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line."""
        return ["[OPTIONS]", "[PATHS]...", "--", "COMMAND..."]


class _Setting(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """``NAME=VALUE``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the name and the value."""
        if isinstance(value, tuple):
            return value
        name, equals, setting = str(value).partition("=")
        if not re.fullmatch(r"\w+", name) or not equals:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name, setting


@click.command("verify", cls=_Verify)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--runs", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each tree.")
@click.option("--metric", "metrics", multiple=True, metavar="REGEX", help="A number in the output to compare.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="How far a metric may move, relative to its value.",
)
@click.option("--ablate", is_flag=True, help="Leave out each fix in turn, to see what it is worth.")
@click.option("--apply", is_flag=True, help="Write the fixes if the program does the same and is not slower.")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Give a run up after this time.")
@click.option("--env", "environment", multiple=True, type=_Setting(), metavar="K=V", help="Set for the program.")
@click.option("--include", multiple=True, metavar="PATH", help="Copy this path although git ignores it.")
@click.option("--link", multiple=True, metavar="PATH", help="Link to this path instead of copying it.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=writable_path,
    help="Write a report for a pull request.",
)
@click.option("--unsafe-fixes", is_flag=True, help="Include fixes that could change what can be observed.")
@listed("--select", help="Rules to enable: codes, prefixes, names or ALL.")
@listed("--ignore", help="Rules to disable.")
@click.option("--target-torch", metavar="VERSION", help="Oldest torch version that the code supports.")
@click.option("--num-workers", type=click.IntRange(min=1), help="What TL101 writes for num_workers.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration and project files.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Run your own program before and after the fixes: torchlint verify src -- python train.py

    The project is copied aside and fixed there; the command runs in original and fixed copies in alternation. Nothing
    is written to your files without --apply. Exit code 0: the same result, no slower; 1: different, failing or slower.
    """
    program = ctx.meta["command"]
    if not program:
        raise click.UsageError("say what to run after --: torchlint verify src -- python train.py")
    console = Console(stderr=True)
    try:
        return _verify(Request(words=tuple(ctx.meta["words"]), program=tuple(program), **options), console)
    except KeyboardInterrupt:
        console.print("interrupted; nothing was written", style="yellow")
        return INTERRUPTED
    except HarnessError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return ERROR


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line says."""

    words: tuple[str, ...]
    program: tuple[str, ...]
    paths: tuple[str, ...]
    runs: int
    metrics: tuple[str, ...]
    tolerance: float
    ablate: bool
    apply: bool
    timeout: float | None
    environment: tuple[tuple[str, str], ...]
    include: tuple[str, ...]
    link: tuple[str, ...]
    report: Path | None
    unsafe_fixes: bool
    select: tuple[tuple[str, ...], ...]
    ignore: tuple[tuple[str, ...], ...]
    target_torch: str | None
    num_workers: int | None
    isolated: bool

    def overrides(self) -> dict[str, Any]:
        """Return the settings that the command line gives."""
        given = {
            "select": joined(self.select),
            "ignore": joined(self.ignore),
            "target_torch": self.target_torch,
            "num_workers": self.num_workers,
        }
        return {name: value for name, value in given.items() if value is not None}


def _verify(request: Request, console: Console) -> int:
    metrics = tuple(Metric.parse(text) for text in request.metrics)
    paths = request.paths or (".",)
    project = find_project(paths, request.include, request.link)
    fixes = collect(paths, request.overrides(), unsafe=request.unsafe_fixes, isolated=request.isolated)
    if not fixes.changes:
        hint = "" if request.unsafe_fixes else " that is safe; --unsafe-fixes includes the others"
        click.echo(f"There is nothing to fix{hint}.")
        return CLEAN
    with guarded_folder("torchlint-verify-") as guarded, console.status("") as status:
        sandbox = Sandbox.make(project, guarded.folder)
        runner = Runner(sandbox, guarded, request.program, dict(request.environment), request.timeout)
        investigation = Investigation(
            runner, fixes, metrics, request.tolerance, request.runs, request.ablate, _sayer(console, status)
        )
        account = Account(investigation.study(), fixes, project.root, request.words)
    for line in lines(account):
        click.echo(line)
    if request.report is not None:
        _write_report(request.report, account)
    if request.apply:
        _apply(account)
    if account.study.interrupted:
        console.print(f"interrupted; this is from {len(account.study.original)} of {request.runs} runs", style="yellow")
        return INTERRUPTED
    return CLEAN if account.study.good else FINDINGS


def _sayer(console: Console, status: Any) -> Any:
    """Return what tells the user which run is on: a line that changes, or plain lines where there is no terminal."""
    if console.is_terminal:
        return status.update
    return lambda text: console.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)


def _write_report(path: Path, account: Account) -> None:
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    try:
        write_output(str(path), markdown(account, cpu_model(), date).encode())
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}") from error


def _apply(account: Account) -> None:
    if not account.study.good:
        click.echo("nothing was applied: the fixed program is not as good as the original")
        return
    _write_fixes(account.fixes, account.root)
    click.echo(f"applied to {len(account.fixes.files)} files")


def _write_fixes(fixes: Fixes, root: Path) -> None:
    digests = fixes.digests()
    for path, data in fixes.without(()).items():
        try:
            write_atomically(str(path), data, digests[path], str(root))
        except SourceError as error:
            raise HarnessError(f"{path}: not written: {error}") from error
