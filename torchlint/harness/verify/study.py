"""The study of one program: runs in alternation, comparison, ablation, blame."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchlint.harness.errors import HarnessError
from torchlint.harness.verify.blame import bisect
from torchlint.harness.verify.changes import Change, Fixes
from torchlint.harness.verify.compare import Comparison, Metric, compare
from torchlint.harness.verify.run import Outcome, Runner
from torchlint.harness.verify.speed import Speed

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Worth:
    """What one fix contributes: all fixes against all but this one."""

    change: Change
    speed: Speed
    comparison: Comparison
    """Of the original with all fixes but this one."""


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that was found out."""

    comparison: Comparison
    original: tuple[Outcome, ...]
    fixed: tuple[Outcome, ...]
    speed: Speed | None
    """None where the fixed program does not do the same."""

    cpu: Speed | None = None
    """The same for processor time, which other programs on the machine disturb less."""

    worth: tuple[Worth, ...] = ()
    blamed: tuple[Change, ...] = ()
    interrupted: bool = False
    """Whether it was ended before all runs were made; it tells of those that were."""

    @property
    def good(self) -> bool:
        """Whether the fixes may be applied: the same result, no slower, and all runs made."""
        equal = self.comparison.equal and not self.interrupted
        return equal and self.speed is not None and not self.speed.slower


@dataclass(frozen=True, slots=True)
class Investigation:
    """A program, its fixes, and how to compare its runs."""

    runner: Runner
    fixes: Fixes
    metrics: tuple[Metric, ...]
    tolerance: float
    runs: int
    ablate: bool
    say: Say

    def study(self) -> Study:
        """Return what all fixes together, and with ``ablate`` each one, do to the program.

        Raises:
            HarnessError: the original program fails or does not print a metric.
        """
        all_fixes = self.fixes.without(())
        first = self._first_runs()
        self.say("fixed, once to see that it works")
        fixed = self.runner.run(all_fixes)
        comparison = compare([first], [fixed], self.metrics, self.tolerance)
        if not comparison.equal:
            comparison, first_runs = self._against_itself(comparison, first, fixed)
            if not comparison.equal:
                return Study(comparison, first_runs, (fixed,), None, blamed=self._blame(first_runs))
        return self._alternate()

    def _first_runs(self) -> Outcome:
        self.say("original, once to see that it works")
        outcome = self.runner.run({})
        if not outcome.succeeded:
            raise HarnessError(f"the program fails before any fix: {outcome.ending}\n{outcome.tail()}{_hint(outcome)}")
        for metric in self.metrics:
            if metric.value(outcome.output) is None:
                raise HarnessError(f"the program's output holds no number for --metric {metric.name!r}")
        return outcome

    def _against_itself(
        self, found: Comparison, first: Outcome, fixed: Outcome
    ) -> tuple[Comparison, tuple[Outcome, ...]]:
        """Return the comparison again, with as much difference allowed as the original shows from run to run."""
        if not fixed.succeeded:
            return found, (first,)
        self.say("original again, to see how much it differs from itself")
        again = self.runner.run({})
        originals = (first, again) if again.succeeded else (first,)
        if not self.metrics and again.words != first.words:
            return Comparison(True, "exit status agrees; the output changes from run to run by itself"), originals
        return compare(originals, [fixed], self.metrics, self.tolerance), originals

    def _blame(self, originals: tuple[Outcome, ...]) -> tuple[Change, ...]:
        def is_bad(changes: Sequence[Change]) -> bool:
            self.say(f"with {len(changes)} of {len(self.fixes.changes)} fixes, to find the one to blame")
            outcome = self.runner.run(self.fixes.only(changes))
            return not compare(originals, [outcome], self.metrics, self.tolerance).equal

        return tuple(bisect(self.fixes.changes, is_bad))

    def _alternate(self) -> Study:
        left_out: list[Change | None] = [None]
        left_out += self.fixes.changes if self.ablate else ()
        variants = {change: self.fixes.without((change,) if change else ()) for change in left_out}
        rounds: list[list[Outcome]] = []
        interrupted = False
        try:
            self._run(variants, rounds)
        except KeyboardInterrupt:
            if not rounds:
                raise
            interrupted = True
        original, *others = (list(outcomes) for outcomes in zip(*rounds, strict=True))
        found = self._conclude(original, dict(zip(left_out, others, strict=True)), interrupted)
        return replace(found, interrupted=interrupted)

    def _run(self, variants: Mapping[Change | None, dict[Path, bytes]], rounds: list[list[Outcome]]) -> None:
        """Add to the rounds, one by one, what became of the original and of the variants."""
        total = self.runs * (1 + len(variants))
        began, done = time.perf_counter(), 0
        for number in range(self.runs):
            outcomes = []
            for which, texts in [("original", {}), *((_called(change), texts) for change, texts in variants.items())]:
                self.say(f"run {number + 1} of {self.runs}: {which}{_time_left(began, done, total - done)}")
                outcomes.append(self.runner.run(texts))
                done += 1
            rounds.append(outcomes)

    def _conclude(
        self, original: list[Outcome], outcomes: dict[Change | None, list[Outcome]], interrupted: bool
    ) -> Study:
        fixed = outcomes.pop(None)
        failed = next((outcome for outcome in original if not outcome.succeeded), None)
        if failed is not None:
            raise HarnessError(f"the program fails now and then without any fix: {failed.ending}\n{failed.tail()}")
        comparison = self._compare(original, fixed)
        if not comparison.equal:
            blamed = () if interrupted else self._blame(tuple(original))
            return Study(comparison, tuple(original), tuple(fixed), None, blamed=blamed)
        worth = tuple(
            Worth(change, Speed.of(_seconds(runs), _seconds(fixed)), self._compare(original, runs))
            for change, runs in outcomes.items()
            if change is not None
        )
        speed = Speed.of(_seconds(original), _seconds(fixed))
        return Study(comparison, tuple(original), tuple(fixed), speed, _cpu_speed(original, fixed), worth)

    def _compare(self, original: Sequence[Outcome], fixed: Sequence[Outcome]) -> Comparison:
        if not self.metrics and len({outcome.words for outcome in original}) > 1:
            failed = next((outcome for outcome in fixed if not outcome.succeeded), None)
            if failed is None:
                return Comparison(True, "exit status agrees; the output changes from run to run by itself")
        return compare(original, fixed, self.metrics, self.tolerance)


def _seconds(outcomes: Sequence[Outcome]) -> list[float]:
    return [outcome.seconds for outcome in outcomes]


def _cpu_speed(original: Sequence[Outcome], fixed: Sequence[Outcome]) -> Speed | None:
    before, after = ([outcome.cpu_seconds for outcome in outcomes] for outcomes in (original, fixed))
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a and b]
    return Speed.of([a for a, _ in pairs], [b for _, b in pairs]) if len(pairs) == len(original) else None


def median_seconds(outcomes: Sequence[Outcome]) -> float:
    """Return the median time of runs."""
    return statistics.median(_seconds(outcomes))


def _called(change: Change | None) -> str:
    return f"all but {change}" if change else "fixed"


def _time_left(began: float, done: int, left: int) -> str:
    """Return about how long the runs that are left take, when one has shown how long one takes."""
    if not done:
        return ""
    seconds = (time.perf_counter() - began) / done * left
    return f" (about {seconds / 60:.0f} min left)" if seconds >= 90 else f" (about {seconds:.0f} s left)"


def _hint(outcome: Outcome) -> str:
    if "No such file or directory" in outcome.output or "FileNotFoundError" in outcome.output:
        return "\n(the copy holds what git does not ignore: --include copies an ignored path too, --link links to it)"
    return ""
