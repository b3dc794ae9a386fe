"""What a run of ``torchlint fix`` did, what it left, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.engine.outcome import FixOutcome
    from torchlint.report.styled import Line


def account(
    outcomes: Sequence[FixOutcome],
    written: Sequence[FixOutcome],
    *,
    apply: bool,
    unsafe: bool,
    writes: str = "--apply",
) -> Iterator[Line]:
    """Yield what was done, what was not, and why; ``writes`` is the option that writes the files."""
    from torchlint.report.data import plural

    applied = Counter((d.code, d.name) for outcome in written for d in outcome.applied)
    if applied:
        verb = "Applied" if apply else "Would apply"
        done = plural(sum(applied.values()), "fix", "fixes") + " in " + plural(len(written), "file")
        yield [(f"{verb} {done}:", "strong")]
        for (code, name), count in sorted(applied.items()):
            yield [(f"  {count:>4}  ", ""), (code, "code"), (f" {name}", "")]
    else:
        yield [("Nothing was fixed." if apply else "There is nothing to fix.", "strong")]
    reasons = Counter(reason for outcome in outcomes for reason in left(outcome, unsafe=unsafe))
    if reasons:
        yield [(f"Not fixed: {plural(sum(reasons.values()), 'finding')}:", "strong")]
        for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            yield [(f"  {count:>4}  {reason}", "")]
    if applied and not apply:
        yield [("Next: ", "dim"), (f"the same command with {writes} writes the files", "hint")]


def left(outcome: FixOutcome, *, unsafe: bool) -> Iterator[str]:
    """Yield, for each finding that remains, why it does."""
    from torchlint.safety import Safety

    refused = {(diagnostic.code, diagnostic.message): reason for diagnostic, reason in outcome.refused}
    declined = {(diagnostic.code, diagnostic.message) for diagnostic in outcome.declined}
    for diagnostic in outcome.result.diagnostics:
        reason = refused.get((diagnostic.code, diagnostic.message))
        if reason is not None:
            yield f"{diagnostic.code} refused: {reason}"
        elif (diagnostic.code, diagnostic.message) in declined:
            yield f"{diagnostic.code} was declined"
        elif diagnostic.fix is None:
            yield f"{diagnostic.code} has no automatic fix"
        elif diagnostic.fix.safety is Safety.DISPLAY:
            yield f"{diagnostic.code} only shows a suggestion"
        elif diagnostic.fix.safety is Safety.UNSAFE and not unsafe:
            yield f"{diagnostic.code} needs --unsafe-fixes"
        else:
            yield f"{diagnostic.code} was left for a later run"
