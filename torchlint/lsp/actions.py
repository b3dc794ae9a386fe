"""What an editor offers to do about findings, and what each of these makes of the text."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from torchlint.diagnostic import Diagnostic
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.engine.ignores import add_ignores
from torchlint.engine.plan import Plan
from torchlint.lsp.checked import Checked, one_finding
from torchlint.safety import Safety
from torchlint.suppress import BUILT_IN
from torchlint.syntax.parse import TimeLimitError, run_with_large_stack

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.torchlint"
QUICK_FIX = types.CodeActionKind.QuickFix.value
KINDS = (QUICK_FIX, FIX_ALL)


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be done about a text."""

    kind: str
    title: str
    finding: Diagnostic | None = None
    """None: about all of them."""

    ignore: bool = False
    """Whether the finding is to be silenced, not fixed."""

    @property
    def is_safe_fix(self) -> bool:
        """Whether it is what most people want to do about the finding."""
        return not self.ignore and self.finding is not None and is_safe(self.finding)


class RefusedError(Exception):
    """What was offered cannot be done; the message says why in one line."""


def is_safe(finding: Diagnostic) -> bool:
    """Return whether the finding has a safe fix."""
    return finding.fix is not None and finding.fix.safety is Safety.SAFE


def offers(checked: Checked, findings: Sequence[Diagnostic], only: Sequence[str] | None) -> Iterator[Offer]:
    """Yield what can be done about these findings, and about all of the text, of the kinds that are asked for."""
    if checked.plan is None:
        return
    if _is_wanted(QUICK_FIX, only):
        for finding in findings:
            yield from _fixes(finding)
        for finding in findings:
            if finding.code not in BUILT_IN:
                yield Offer(QUICK_FIX, f"Ignore {finding.code} on this line", finding, ignore=True)
    wanted = (Safety.SAFE, Safety.UNSAFE) if checked.plan.settings.unsafe_fixes else (Safety.SAFE,)
    fixable = [found for found in checked.result.diagnostics if found.fix and found.fix.safety in wanted]
    if fixable and _is_wanted(FIX_ALL, only):
        yield Offer(FIX_ALL, "torchlint: Apply all " + ("fixes" if len(wanted) > 1 else "safe fixes"))


def _fixes(finding: Diagnostic) -> Iterator[Offer]:
    if finding.fix and finding.fix.safety is not Safety.DISPLAY:
        mark = "" if is_safe(finding) else " (unsafe)"
        yield Offer(QUICK_FIX, f"Fix {finding.code}{mark}: {finding.fix.message}", finding)


def _is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Return whether a kind is one of those that are asked for, or of a narrower kind."""
    return not only or any(f"{kind}.".startswith(f"{wanted}.") for wanted in only)


def carried_out(checked: Checked, offer: Offer) -> str:
    """Return the text after what was offered; every check of ``torchlint fix`` holds for it.

    Raises:
        RefusedError: it cannot be done.
    """
    if checked.plan is None:
        raise RefusedError("the text is not checked")
    if offer.ignore and offer.finding:
        return _ignored(checked, checked.plan, offer.finding)
    return _fixed(checked, checked.plan, offer.finding)


def _fixed(checked: Checked, plan: Plan, finding: Diagnostic | None) -> str:
    unsafe = plan.settings.unsafe_fixes if finding is None else not is_safe(finding)
    limits = checked.limits if finding is None else one_finding(finding)
    fixed = fix_file(checked.source, plan.settings, plan.rules(), plan.target, unsafe=unsafe, limits=limits)
    if fixed.text == checked.source.text:
        reasons = [*(problem.message for problem in fixed.result.errors), *(reason for _, reason in fixed.refused)]
        raise RefusedError(reasons[0] if reasons else "nothing is left to fix")
    return fixed.text


def _ignored(checked: Checked, plan: Plan, finding: Diagnostic) -> str:
    check = functools.partial(check_file, settings=plan.settings, rules=plan.rules(), target=plan.target)
    add = functools.partial(add_ignores, checked.source, check, plan.names(), one_finding(finding))
    try:
        ignored = run_with_large_stack(add, plan.settings.file_timeout)
    except TimeLimitError as error:
        raise RefusedError(f"it took longer than {plan.settings.file_timeout:g} s") from error
    if ignored.text == checked.source.text:
        raise RefusedError(f"{finding.code} {ignored.left[0][1] if ignored.left else 'is silenced already'}")
    return ignored.text
