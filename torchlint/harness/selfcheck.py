"""The method measured by itself: a program against itself, again and again."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.bench import Bench
from torchlint.harness.case import control
from torchlint.harness.intervals import Interval, ratio_interval
from torchlint.harness.measure import Plan, measure

LEAST_COVERAGE, MOST_COVERAGE = 0.90, 0.98
WIDEST = 0.03
PLAN = Plan(rounds=Plan().rounds, budget=60, block=0.008, warm=0.05, most_pairs=8)
"""As many rounds as any measurement, but short ones of a fast program: hundreds of comparisons take minutes."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What the comparisons of a program with itself gave."""

    intervals: tuple[Interval, ...]

    @property
    def coverage(self) -> float:
        """The share of intervals that contain 1."""
        return sum(interval.contains(1) for interval in self.intervals) / len(self.intervals)

    @property
    def half_width(self) -> float:
        """The median half-width of the intervals."""
        return statistics.median(interval.half_width for interval in self.intervals)

    @property
    def passed(self) -> bool:
        """Whether the method keeps what it promises."""
        return LEAST_COVERAGE <= self.coverage <= MOST_COVERAGE and self.half_width <= WIDEST


def self_check(bench: Bench, comparisons: int, tick: Callable[[], None]) -> SelfCheck:
    """Return the outcome of so many comparisons, or of those before an interrupt; ``tick`` is called after each."""
    program = control().source
    intervals: list[Interval] = []
    try:
        for _ in range(comparisons):
            with tempfile.TemporaryDirectory(dir=bench.folder) as scratch:
                place = dataclasses.replace(bench.place(Path(scratch), control()), plan=PLAN)
                timing = measure(place, program, program, lambda: None)
            intervals.append(ratio_interval(timing.time_ratios))
            tick()
    except KeyboardInterrupt:
        if not intervals:
            raise
    return SelfCheck(tuple(intervals))
