"""What a study found, for the terminal and for a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.verify.changes import Change, Fixes
from torchlint.harness.verify.compare import MetricComparison
from torchlint.harness.verify.study import Study, median_seconds
from torchlint.version import __version__


@dataclass(frozen=True, slots=True)
class Account:
    """A study with all that is needed to tell about it."""

    study: Study
    fixes: Fixes
    root: Path
    arguments: tuple[str, ...]
    """The words of the command line, to repeat the study."""

    def place(self, change: Change) -> str:
        """Return where a fix is, as a path and a row below the root."""
        return f"{change.path.relative_to(self.root).as_posix()}:{change.row}"


def lines(account: Account) -> list[str]:
    """Return the study as plain lines for a terminal."""
    study, fixes = account.study, account.fixes
    number, files = len(fixes.changes), len(fixes.files)
    count = f"{number} fix{'es' * (number != 1)} in {files} file{'s' * (files != 1)}"
    found = [count, f"equality  {'equal' if study.comparison.equal else 'DIFFERENT'}: {study.comparison.detail}"]
    found += [f"metric    {_metric(metric)}" for metric in study.comparison.metrics]
    if study.speed is None:
        return found + _blame(account)
    before, after = median_seconds(study.original), median_seconds(study.fixed)
    found.append(f"speedup   {study.speed}: {before:.2f} s before, {after:.2f} s after (medians of {study.speed.runs})")
    if study.cpu is not None:
        found.append(f"cpu time  {study.cpu}")
    if study.speed.slower:
        found.append("verdict   slower: the fixes cost time here")
    if study.worth:
        found.append("worth of each fix: all fixes against all but this one")
        width = max(len(account.place(worth.change)) for worth in study.worth)
        for worth in sorted(study.worth, key=lambda worth: -worth.speed.ratio):
            place = account.place(worth.change).ljust(width)
            found.append(f"  {place}  {worth.change.code} {worth.change.name}  {worth.speed}")
    return found


def _blame(account: Account) -> list[str]:
    study = account.study
    if not study.blamed:
        return []
    together = " (only together)" if len(study.blamed) > 1 else ""
    found = [f"to blame{together}:"]
    found += [f"  {account.place(c)}  {c.code} {c.name}: {c.message}" for c in study.blamed]
    failed = next((outcome for outcome in study.fixed if not outcome.succeeded), None)
    if failed is not None:
        found += ["last lines of the fixed program:", *(f"  {line}" for line in failed.tail().splitlines())]
    return found


def _metric(metric: MetricComparison) -> str:
    fixed = "missing" if metric.fixed is None else f"{metric.fixed:g}"
    relation = "within" if metric.equal else "NOT within"
    return f"{metric.name}: {metric.original:g} against {fixed}, {relation} {metric.allowed:.2g}"


def markdown(account: Account, machine: str, date: str) -> str:
    """Return the study as Markdown, ready for a pull request."""
    study, fixes = account.study, account.fixes
    parts = ["## Performance fixes by torchlint, verified", ""]
    if study.speed is not None:
        before, after = median_seconds(study.original), median_seconds(study.fixed)
        parts.append(f"The program runs **{study.speed}** as fast: {before:.2f} s before, {after:.2f} s after.")
    equal = "It does the same as before" if study.comparison.equal else "**It does not do the same as before**"
    parts += [f"{equal}: {study.comparison.detail}.", ""]
    if study.comparison.metrics:
        parts += ["| metric | before | after | allowed difference |", "|---|---|---|---|"]
        parts += [_metric_row(metric) for metric in study.comparison.metrics] + [""]
    parts += [*_change_table(account), ""]
    if study.blamed:
        blamed = ", ".join(f"`{account.place(change)}` ({change.code})" for change in study.blamed)
        parts += [f"To blame{' together' * (len(study.blamed) > 1)}: {blamed}.", ""]
    command = shlex.join(["torchlint", "verify", *account.arguments])
    parts += [
        f"Measured on {machine}, {date}, torchlint {__version__}; original and fixed copies ran in alternation.",
        "",
        "To repeat:",
        "",
        f"```\n{command}\n```",
        "",
        "<details><summary>The diff</summary>",
        "",
        f"```diff\n{fixes.diff(account.root)}```",
        "",
        "</details>",
    ]
    return "\n".join(parts) + "\n"


def _metric_row(metric: MetricComparison) -> str:
    fixed = "missing" if metric.fixed is None else f"{metric.fixed:g}"
    name = metric.name.replace("|", "\\|")
    return f"| `{name}` | {metric.original:g} | {fixed} | {metric.allowed:.2g} |"


def _change_table(account: Account) -> Sequence[str]:
    worth = {item.change: str(item.speed) for item in account.study.worth}
    head = "| place | rule | fix |" + " worth |" * bool(worth)
    rows = [head, "|---|---|---|" + "---|" * bool(worth)]
    for change in account.fixes.changes:
        row = f"| `{account.place(change)}` | {change.code} {change.name} | {change.message} |"
        rows.append(row + f" {worth[change]} |" if change in worth else row)
    return rows
