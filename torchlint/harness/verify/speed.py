"""How much faster one series of runs is than another, with as much certainty as their number allows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torchlint.harness.intervals import LEAST_ROUNDS, ratio_interval
from torchlint.harness.verdict import LEAST_EFFECT


@dataclass(frozen=True, slots=True)
class Speed:
    """A ratio of times; more than 1 is a gain."""

    ratio: float
    low: float
    high: float
    runs: int

    @staticmethod
    def of(slow: Sequence[float], fast: Sequence[float]) -> Speed:
        """Return the ratio of neighbouring runs: with an interval from 5 pairs on, else with their range."""
        ratios = [a / b for a, b in zip(slow, fast, strict=True)]
        if len(ratios) < LEAST_ROUNDS:
            return Speed(statistics.geometric_mean(ratios), min(ratios), max(ratios), len(ratios))
        interval = ratio_interval(ratios)
        return Speed(interval.ratio, interval.low, interval.high, len(ratios))

    @property
    def slower(self) -> bool:
        """Whether it is a loss that stands out."""
        return self.high < 1 and self.ratio < 1 / (1 + LEAST_EFFECT)

    def __str__(self) -> str:
        kind = "95 % interval" if self.runs >= LEAST_ROUNDS else f"range of {self.runs}"
        return f"{self.ratio:.2f}x ({kind} {self.low:.2f} to {self.high:.2f})"
