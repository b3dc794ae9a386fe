"""Running cases: original against fixed, equality first, then time."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.case import Case, Quantity
from torchlint.harness.devices import Environment
from torchlint.harness.equality import Equality, Outputs, allow_for_noise, compare
from torchlint.harness.errors import FixedProgramError, ProgramError
from torchlint.harness.intervals import Interval, ratio_interval
from torchlint.harness.measure import Cost, Place, Plan, Timing, measure
from torchlint.harness.processes import Launcher, missing, survey
from torchlint.harness.program import BY_FIXER, FixedProgram
from torchlint.harness.verdict import Verdict, judge


@dataclass(frozen=True, slots=True)
class CaseResult:
    """All that is known about one case on one device."""

    code: str
    name: str
    title: str
    digest: str
    """Of both programs' texts: a result belongs to them."""

    origin: str
    """Who fixed the program: torchlint, or a hand."""

    verdict: Verdict
    reason: str
    equality: Equality | None
    quantity: Quantity
    interval: Interval | None
    """Of the quantity: more than 1 is a gain. None where the device cannot show it."""

    rounds: tuple[float, ...] = ()
    time_interval: Interval | None = None
    original: Cost | None = None
    fixed: Cost | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Bench:
    """A device that is ready for measurements."""

    device: str
    environment: Environment
    launcher: Launcher
    plan: Plan
    folder: Path

    @staticmethod
    def prepare(device: str, threads: int | None, plan: Plan, folder: Path) -> Bench:
        """Return a bench for a device.

        Raises:
            HarnessError: there is no torch or no such device.
        """
        launcher, resolved, environment = survey(folder, device, threads)
        return Bench(resolved, environment, launcher, plan, folder)

    def place(self, folder: Path, case: Case) -> Place:
        """Return this bench's way to run the programs of a case, in a folder."""
        cores = 0 if "two-cores" in case.needs else self.launcher.threads
        return Place(self.device, self.launcher, self.plan, folder, cores)

    def run(self, case: Case, fixed: FixedProgram | None, tick: Callable[[], None] = lambda: None) -> CaseResult:
        """Return the result of one case; whatever the programs do, it is a verdict."""
        began = time.perf_counter()
        if fixed is None:
            return _unmeasured(
                case, case.source, BY_FIXER, f"torchlint has no fix for {case.code} in its program", None
            )
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            result = self._compare(case, fixed, Path(scratch), tick)
        return dataclasses.replace(result, seconds=time.perf_counter() - began)

    def _compare(self, case: Case, fixed: FixedProgram, scratch: Path, tick: Callable[[], None]) -> CaseResult:
        reasons = missing(scratch, self.launcher, case.needs, self.device) if case.needs else {}
        reason = next(filter(None, reasons.values()), "")
        try:
            equality = self.equality(case, fixed.text, scratch)
        except ProgramError as error:
            why = reason or f"the original program fails: {error}"
            return _unmeasured(case, fixed.text, fixed.origin, why, None)
        except FixedProgramError as error:
            if reason:
                return _unmeasured(case, fixed.text, fixed.origin, reason, None)
            equality = Equality(case.criterion, False, str(error))
        if not equality.holds:
            return _unmeasured(case, fixed.text, fixed.origin, equality.detail, equality, Verdict.DIFFERENT)
        if reason:
            return _unmeasured(case, fixed.text, fixed.origin, reason, equality)
        try:
            memory = case.quantity is Quantity.MEMORY
            timing = measure(self.place(scratch, case), case.source, fixed.text, tick, memory=memory)
        except ProgramError as error:
            return _unmeasured(case, fixed.text, fixed.origin, f"the program failed: {error}", equality)
        return _judged(case, fixed, equality, timing)

    def equality(self, case: Case, fixed: str, scratch: Path) -> Equality:
        """Return whether both programs compute the same.

        Raises:
            ProgramError: the original program fails.
            FixedProgramError: the fixed one does.
        """
        place = self.place(scratch, case)
        with place.program("first", case.source) as one, place.program("second", fixed) as two:
            original = one.ready().outputs(case.compared_steps)
            try:
                outputs = two.ready().outputs(case.compared_steps)
            except ProgramError as error:
                raise FixedProgramError(f"the fixed program fails: {error}") from error
        found = compare(original, outputs, case.criterion, case.tolerance)
        if found.holds:
            return found
        with place.program("again", case.source) as once_more:
            again: Outputs = once_more.ready().outputs(case.compared_steps)
        return allow_for_noise(found, original, again, outputs)


def digest(original: str, fixed: str) -> str:
    """Return the digest of a pair of programs."""
    return hashlib.sha256(f"{original}\0{fixed}".encode()).hexdigest()[:16]


def _judged(case: Case, fixed: FixedProgram, equality: Equality, timing: Timing) -> CaseResult:
    time_interval = ratio_interval(timing.time_ratios)
    memory = ratio_interval(timing.memory_ratios) if timing.memory_ratios else None
    verdict, reason = judge(case.quantity, time_interval, memory)
    by_memory = case.quantity is Quantity.MEMORY
    return CaseResult(
        code=case.code,
        name=case.name,
        title=case.title,
        digest=digest(case.source, fixed.text),
        origin=fixed.origin,
        verdict=verdict,
        reason=reason,
        equality=equality,
        quantity=case.quantity,
        interval=memory if by_memory else time_interval,
        rounds=timing.memory_ratios if by_memory else timing.time_ratios,
        time_interval=time_interval,
        original=timing.original,
        fixed=timing.fixed,
    )


def _unmeasured(
    case: Case,
    fixed: str,
    origin: str,
    reason: str,
    equality: Equality | None,
    verdict: Verdict = Verdict.NOT_MEASURABLE,
) -> CaseResult:
    pair = digest(case.source, fixed)
    quantity = case.quantity
    return CaseResult(case.code, case.name, case.title, pair, origin, verdict, reason, equality, quantity, None)


def select(found: Sequence[Case], wanted: Sequence[str]) -> tuple[list[Case], list[str]]:
    """Return the cases with these codes, prefixes of codes or names, and the words that match none."""
    chosen = [case for case in found if not wanted or any(_matches(case, word) for word in wanted)]
    return chosen, [word for word in wanted if not any(_matches(case, word) for case in found)]


def _matches(case: Case, word: str) -> bool:
    return case.code.startswith(word.upper()) or case.name == word.lower()
