"""``check --add-ignore``: a comment for each finding that silences it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torchlint.cli import CLEAN, ERROR, FINDINGS
from torchlint.cli.fix import write_or_show
from torchlint.report.data import plural
from torchlint.suppress import UNUSED

if TYPE_CHECKING:
    from torchlint.cli.options import Choices
    from torchlint.engine.outcome import FixOutcome
    from torchlint.report.styled import Line


def run_add_ignore(choices: Choices, *, apply: bool, exit_zero: bool, **options: Any) -> int:
    """Show the comments as a diff, or write them, tell what was done, and return the exit code."""
    from torchlint.cli.session import Session

    session = Session(choices, **options)
    if session.show_only():
        return session.exit_code(CLEAN)
    outcomes = session.add_ignores()
    report = session.make_report(outcome.result for outcome in outcomes)
    written = write_or_show(session, report, outcomes, apply=apply)
    session.complain(report)
    session.output.aside(account(outcomes, written, apply=apply))
    counted = [d for outcome in outcomes for d in (outcome.result.diagnostics if apply else outcome.applied)]
    found = not exit_zero and session.fails(counted)
    return ERROR if report.problems else session.exit_code(FINDINGS if found else CLEAN)


def account(outcomes: Sequence[FixOutcome], written: Sequence[FixOutcome], *, apply: bool) -> Iterator[Line]:
    """Yield what was silenced, and what was not and why."""
    done = Counter((d.code, d.name) for outcome in written for d in outcome.applied if d.code != UNUSED)
    removed = sum(d.code == UNUSED for outcome in written for d in outcome.applied)
    are = "" if apply else "would be "
    if done:
        where = plural(len(written), "file")
        yield [(f"{plural(sum(done.values()), 'finding')} {are}silenced in {where}:", "strong")]
        for (code, name), count in sorted(done.items()):
            yield [(f"  {count:>4}  ", ""), (code, "code"), (f" {name}", "")]
    if removed:
        yield [(f"{plural(removed, 'unused suppression')} {are}removed.", "strong")]
    if not done and not removed:
        yield [("There is nothing to silence.", "strong")]
    for outcome in outcomes:
        for finding, reason in outcome.refused:
            where = f"{finding.path}:{outcome.result.where(finding.start)}"
            yield [(f"Left: {where}: {finding.code} {reason}", "")]
    if written and not apply:
        yield [("Next: ", "dim"), ("the same command with --apply writes the files", "hint")]
