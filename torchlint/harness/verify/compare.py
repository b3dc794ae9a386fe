"""Whether the fixed program did what the original does: exit status, metrics, words of the output."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torchlint.harness.errors import HarnessError
from torchlint.harness.verify.run import Outcome

_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a regular expression picks from the output: its last match, first group."""

    pattern: re.Pattern[str]

    @staticmethod
    def parse(text: str) -> Metric:
        """Return the metric of a regular expression.

        Raises:
            HarnessError: it is not one, or has no group.
        """
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise HarnessError(f"--metric {text!r} is not a regular expression: {error}") from error
        if not pattern.groups:
            raise HarnessError(rf"--metric {text!r} needs a group around the number, as in 'loss (\d+\.\d+)'")
        return Metric(pattern)

    def value(self, output: str) -> float | None:
        """Return the number in an output; None if there is none."""
        last = None
        for match in self.pattern.finditer(output):
            last = match.group(1)
        try:
            return float(last) if last is not None else None
        except ValueError:
            return None

    @property
    def name(self) -> str:
        """The expression."""
        return self.pattern.pattern


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of original and fixed runs."""

    name: str
    original: float
    fixed: float | None
    """Medians."""

    allowed: float
    """How far the medians may be apart: the tolerance, or as far as the original's own runs are."""

    @property
    def equal(self) -> bool:
        """Whether the fixed program's metric is that of the original."""
        if self.fixed is None:
            return False
        same = self.fixed == self.original or (self.fixed != self.fixed and self.original != self.original)
        return same or abs(self.fixed - self.original) <= self.allowed


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the runs of both trees say about each other."""

    equal: bool
    detail: str
    metrics: tuple[MetricComparison, ...] = ()


def compare(
    original: Sequence[Outcome], fixed: Sequence[Outcome], metrics: Sequence[Metric], tolerance: float
) -> Comparison:
    """Return whether the fixed program did the same as the original.

    Raises:
        HarnessError: the original does not print a metric.
    """
    failed = next((outcome for outcome in fixed if not outcome.succeeded), None)
    if failed is not None:
        return Comparison(False, f"the fixed program fails: {failed.ending}")
    compared = tuple(_compare_metric(metric, original, fixed, tolerance) for metric in metrics)
    apart = [metric for metric in compared if not metric.equal]
    if apart:
        worst = apart[0]
        shown = "missing" if worst.fixed is None else f"{worst.fixed:g}"
        return Comparison(False, f"{worst.name}: {worst.original:g} against {shown}", compared)
    if metrics:
        return Comparison(True, "exit status and metrics agree", compared)
    if original[0].said == fixed[0].said:
        return Comparison(True, "exit status and output are identical")
    if original[0].words == fixed[0].words:
        return Comparison(True, "exit status and output agree but for numbers; --metric compares those that matter")
    first = _first_difference(original[0].words, fixed[0].words)
    return Comparison(False, f"the output differs in more than numbers, {first}; --metric compares only what matters")


def _first_difference(original: str, fixed: str) -> str:
    pairs = itertools.zip_longest(original.splitlines(), fixed.splitlines())
    found = next(((row, pair) for row, pair in enumerate(pairs, 1) if pair[0] != pair[1]), None)
    if found is None:
        return "in its line ends"
    row, pair = found
    before, after = ("nothing" if line is None else f"`{line.strip()[:_MOST_SHOWN]}`" for line in pair)
    return f"first in row {row}: {before} against {after}"


def _compare_metric(
    metric: Metric, original: Sequence[Outcome], fixed: Sequence[Outcome], tolerance: float
) -> MetricComparison:
    own = [value for outcome in original if (value := metric.value(outcome.output)) is not None]
    if not own:
        raise HarnessError(f"the program's output holds no number for --metric {metric.name!r}")
    others = [metric.value(outcome.output) for outcome in fixed]
    found = [value for value in others if value is not None]
    center = statistics.median(own)
    allowed = max(tolerance * abs(center), max(own) - min(own))
    other = statistics.median(found) if len(found) == len(others) else None
    return MetricComparison(metric.name, center, other, allowed)
