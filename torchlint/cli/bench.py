"""``torchlint bench``: original against fixed on this device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from torchlint.cli import CLEAN, ERROR, FINDINGS, INTERRUPTED
from torchlint.cli.reporting import writable_path
from torchlint.harness import plot, table
from torchlint.harness.bench import Bench, digest, select
from torchlint.harness.case import Case, cases, control
from torchlint.harness.document import CaseDocument, case_document, document, resumable, write
from torchlint.harness.errors import HarnessError
from torchlint.harness.guardian import guarded_folder
from torchlint.harness.intervals import LEAST_ROUNDS
from torchlint.harness.measure import Plan
from torchlint.harness.program import BY_HAND, FixedProgram, Fixer, fixed_program, torchlint_fixer
from torchlint.harness.selfcheck import self_check

_DEFAULTS = Plan()
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="bench")
@click.argument("codes", nargs=-1, metavar="[CODES]...")
@click.option("--all", "everything", is_flag=True, help="Measure all cases, and a control against itself.")
@click.option("--list", "listing", is_flag=True, help="List the cases and what they need.")
@click.option("--device", default="auto", metavar="DEVICE", help="cpu, cuda, cuda:1, mps, xpu; default: what there is.")
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    default=_DEFAULTS.budget,
    show_default=True,
    help="Seconds for each case.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=LEAST_ROUNDS),
    default=_DEFAULTS.rounds,
    show_default=True,
    help="Rounds of fresh processes for each case.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=0),
    help="Threads of torch; 0 as torch likes; default: all but one, or two with an accelerator.",
)
@click.option("--json", "json_path", type=_FILE, callback=writable_path, help="Write the results there.")
@click.option("--plot", "plot_path", type=_FILE, callback=writable_path, help="Write a .svg or .html plot.")
@click.option("--resume", is_flag=True, help="Keep what the file of --json has already.")
@click.option(
    "--self-check",
    "comparisons",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=200,
    metavar="[N]",
    help="Compare a program with itself N times (200), to test the method on this machine.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Measure what fixes are worth on this device: equality, gain, interval.

    CODES are codes (TL601), beginnings of codes (TL3) or names (zero-grad-to-zero). The exit code is 1 if a fixed
    program computes something else.
    """
    choice = Options(**options)
    console = Console(stderr=True)
    fixer: Fixer = (ctx.obj or {}).get("fixer", torchlint_fixer)
    if choice.plot_path is not None and choice.plot_path.suffix not in (".svg", ".html"):
        raise click.UsageError(f"--plot writes .svg or .html, not {choice.plot_path.name!r}")
    if choice.resume and choice.json_path is None:
        raise click.UsageError("--resume needs the file of --json to resume from")
    try:
        return _run(choice, console, fixer)
    except HarnessError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return ERROR


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    codes: tuple[str, ...]
    everything: bool
    listing: bool
    device: str
    budget: float
    rounds: int
    threads: int | None
    json_path: Path | None
    plot_path: Path | None
    resume: bool
    comparisons: int | None


def _run(choice: Options, console: Console, fixer: Fixer) -> int:
    chosen, unknown = select(cases(), choice.codes)
    if unknown:
        known = ", ".join(case.code for case in cases())
        raise click.UsageError(f"no case for {', '.join(unknown)}; there are {known}")
    if choice.listing:
        _list(chosen)
        return CLEAN
    if not (choice.codes or choice.everything or choice.comparisons):
        raise click.UsageError("say which cases: codes or names, or --all")
    plan = Plan(rounds=choice.rounds, budget=choice.budget)
    with guarded_folder("torchlint-bench-") as guarded, _progress(console) as progress:
        bench = Bench.prepare(choice.device, choice.threads, plan, guarded.folder)
        if choice.comparisons:
            return _check_itself(bench, choice, progress)
        run = _Run(bench, choice, fixer, progress)
        finished = run.all(chosen)
    Console().print(table.results(run.document()))
    if choice.plot_path is not None:
        plot.write(choice.plot_path, run.document())
    if not finished:
        console.print(f"interrupted; {len(run.found)} of {len(chosen)} cases were measured", style="yellow")
        return INTERRUPTED
    return FINDINGS if any(case["verdict"] == "different" for case in run.found) else CLEAN


def _list(chosen: list[Case]) -> None:
    for case in chosen:
        needs = f" (needs {' and '.join(case.needs).replace('-', ' ')})" if case.needs else ""
        click.echo(f"{case.code}  {case.name}{needs}\n       {case.title}")


@dataclass(slots=True)
class _Run:
    """A run in progress; what it has found so far is always on disk."""

    bench: Bench
    choice: Options
    fixer: Fixer
    progress: Progress
    found: list[CaseDocument] = field(default_factory=list)
    kept: list[CaseDocument] = field(default_factory=list)
    """What an earlier run found for the same programs, measured in this one or not."""

    control: CaseDocument | None = None

    def all(self, chosen: list[Case]) -> bool:
        """Measure the cases and return whether none was left out by an interrupt."""
        earlier: dict[str, CaseDocument] = {}
        if self.choice.resume and self.choice.json_path is not None:
            earlier = resumable(self.choice.json_path, self.bench.environment)
            self.kept = [known for case in cases() if (known := earlier.get(self._digest(case)))]
            self.control = earlier.get(digest(control().source, control().source))
        task = self.progress.add_task("", total=(len(chosen) + self.choice.everything) * (self.bench.plan.rounds + 1))
        try:
            for case in chosen:
                self.found.append(self._measured(case, fixed_program(case, self.fixer), earlier, task))
                self._save()
            if self.choice.everything:
                self.control = self._measured(control(), FixedProgram(control().source, BY_HAND), earlier, task)
                self._save()
        except KeyboardInterrupt:
            self._save()
            return False
        return True

    def document(self) -> dict[str, Any]:
        """Return what has been found so far."""
        by_name = {case["name"]: case for case in (*self.kept, *self.found)}
        return document(self.bench.environment, self.bench.plan, list(by_name.values()), self.control)

    def _digest(self, case: Case) -> str:
        fixed = fixed_program(case, self.fixer)
        return digest(case.source, fixed.text if fixed else case.source)

    def _measured(
        self, case: Case, fixed: FixedProgram | None, earlier: dict[str, CaseDocument], task: Any
    ) -> CaseDocument:
        self.progress.update(task, description=f"{case.code} {case.name}")
        before = self.progress.tasks[task].completed
        known = earlier.get(digest(case.source, fixed.text if fixed else case.source))
        result = known or case_document(self.bench.run(case, fixed, lambda: self.progress.advance(task)))
        self.progress.update(task, completed=before + self.bench.plan.rounds + 1)
        self.progress.console.print(f"{case.code} {case.name}: {result['verdict']}", highlight=False)
        return result

    def _save(self) -> None:
        if self.choice.json_path is not None:
            write(self.choice.json_path, self.document())


def _check_itself(bench: Bench, choice: Options, progress: Progress) -> int:
    comparisons = choice.comparisons or 1
    task = progress.add_task("program against itself", total=comparisons)
    found = self_check(bench, comparisons, lambda: progress.advance(task))
    summary = {
        "comparisons": len(found.intervals),
        "coverage": round(found.coverage, 4),
        "median_half_width": round(found.half_width, 5),
        "passed": found.passed,
        "device": bench.environment.device,
        "torch": bench.environment.torch,
        "threads": bench.environment.threads,
        "date": bench.environment.date,
        "intervals": [[round(i.ratio, 5), round(i.low, 5), round(i.high, 5)] for i in found.intervals],
    }
    click.echo(
        f"{len(found.intervals)} comparisons of a program with itself: {found.coverage:.1%} of the intervals contain 1 "
        f"(90 to 98 % wanted), median half-width {found.half_width:.2%} (at most 3 % wanted)"
    )
    if choice.json_path is not None:
        choice.json_path.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return CLEAN if found.passed else FINDINGS


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress
