"""Whether two programs computed the same: bitwise, within a tolerance, or in distribution."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from torchlint.harness.case import Criterion
from torchlint.harness.outputs import Leaf

LEAST_SAMPLES = 6500
"""So many values per program show a shift of 0.1 standard deviations in 99 of 100 cases."""

_FALSE_ALARM = 1e-3
"""How often equal distributions may be called different, over all outputs of a case together."""

_NOISE_MARGIN = 4.0
"""How far the fixed program may lie from the original, in multiples of how far the original lies from itself."""

Outputs = Sequence[Sequence[Leaf]]
"""The leaves of each compared step."""


@dataclass(frozen=True, slots=True)
class Equality:
    """The outcome of a comparison of outputs."""

    criterion: Criterion
    holds: bool
    detail: str
    """In words: what agrees how well, or what differs first and by how much."""


def compare(original: Outputs, fixed: Outputs, criterion: Criterion, tolerance: float) -> Equality:
    """Return whether the outputs agree by the criterion.

    What is bitwise equal is equal by any criterion. For a distribution, values of an output are pooled over the steps
    and taken as independent samples.
    """
    difference = _structure(original, fixed, strict=criterion is Criterion.BITWISE)
    if difference:
        return Equality(criterion, False, difference)
    pairs = _pairs(original, fixed)
    if not pairs:
        return Equality(criterion, False, "the program has no outputs to compare")
    if all(a.digest == b.digest for _, a, b in pairs):
        return Equality(criterion, True, f"bitwise equal over {_steps(len(original))}")
    if criterion is Criterion.DISTRIBUTION:
        return _compare_distributions(original, fixed)
    step, path, worst = max(((s, a.path, relative_difference(a, b)) for s, a, b in pairs), key=lambda item: item[2])
    where = f"{path or 'output'} in step {step + 1}"
    if criterion is Criterion.BITWISE:
        step, a, b = next(item for item in pairs if item[1].digest != item[2].digest)
        where = f"{a.path or 'output'} differs from step {step + 1} on"
        return Equality(criterion, False, f"{where}: {_first_values(a, b)}")
    holds = worst <= tolerance
    comparison = f"{worst:.1e} at most, in {where}" if holds else f"{worst:.1e} in {where}, more than {tolerance:.0e}"
    return Equality(criterion, holds, f"relative difference {comparison}")


def allow_for_noise(found: Equality, original: Outputs, again: Outputs, fixed: Outputs) -> Equality:
    """Return the comparison in the light of how far the original differs from itself when it is run again.

    Some device code is not reproducible (atomic additions). Then bitwise equality cannot be asked of a fix either.
    """
    if found.holds or found.criterion is Criterion.DISTRIBUTION:
        return found
    own = _largest_difference(original, again)
    if own == 0 or not math.isfinite(own) or _structure(original, fixed, strict=True):
        return found
    across = _largest_difference(original, fixed)
    if across > _NOISE_MARGIN * own:
        return Equality(found.criterion, False, f"{found.detail}; the original differs from itself by {own:.1e} only")
    detail = f"relative difference {across:.1e}, as the original run twice ({own:.1e})"
    return Equality(Criterion.TOLERANCE, True, detail)


def relative_difference(a: Leaf, b: Leaf) -> float:
    """Return the largest difference of two outputs, relative to the largest finite value of the first."""
    if a.digest == b.digest:
        return 0.0
    if len(a.values) != len(b.values) or not a.values:
        return math.inf
    scale = max((abs(x) for x in a.values if math.isfinite(x)), default=0.0) or 1.0
    worst = 0.0
    for x, y in zip(a.values, b.values, strict=True):
        if x == y or (math.isnan(x) and math.isnan(y)):
            continue
        if not (math.isfinite(x) and math.isfinite(y)):
            return math.inf
        worst = max(worst, abs(x - y) / scale)
    return worst


def _pairs(original: Outputs, fixed: Outputs) -> list[tuple[int, Leaf, Leaf]]:
    """Return the step, the original's and the fixed program's leaf for each output; the structures must be equal."""
    steps = enumerate(zip(original, fixed, strict=True))
    return [(step, a, b) for step, (one, two) in steps for a, b in zip(one, two, strict=True)]


def _largest_difference(one: Outputs, two: Outputs) -> float:
    if _structure(one, two, strict=True):
        return math.inf
    return max((relative_difference(a, b) for _, a, b in _pairs(one, two)), default=0.0)


def _structure(original: Outputs, fixed: Outputs, *, strict: bool) -> str:
    """Return how the outputs differ in form, or nothing."""
    if len(original) != len(fixed):
        return f"{_steps(len(original))} against {_steps(len(fixed))}"
    for step, (one, two) in enumerate(zip(original, fixed, strict=True)):
        paths, other = [leaf.path for leaf in one], [leaf.path for leaf in two]
        if paths != other:
            return f"other outputs in step {step + 1}: {', '.join(paths)} against {', '.join(other)}"
        for a, b in zip(one, two, strict=True):
            if a.shape != b.shape:
                return f"{a.path or 'output'} has shape {a.shape} against {b.shape}"
            if strict and a.dtype != b.dtype:
                return f"{a.path or 'output'} is {a.dtype} against {b.dtype}"
    return ""


def _compare_distributions(original: Outputs, fixed: Outputs) -> Equality:
    paths = [leaf.path for leaf in original[0]]
    worst = (1.0, "", "")
    least = math.inf
    for index, path in enumerate(paths):
        a, b = (_pooled(outputs, index) for outputs in (original, fixed))
        if min(len(a), len(b)) < LEAST_SAMPLES:
            detail = f"{path} has {min(len(a), len(b))} samples, and telling distributions apart takes {LEAST_SAMPLES}"
            return Equality(Criterion.DISTRIBUTION, False, detail)
        least = min(least, len(a), len(b))
        worst = min(worst, (mean_p_value(a, b), path, "mean"), (kolmogorov_smirnov(a, b), path, "shape"))
    p_value, path, what = worst
    corrected = min(1.0, p_value * 2 * len(paths))
    if corrected < _FALSE_ALARM:
        detail = f"the {what} of {path}'s distribution differs (p = {corrected:.1e})"
        return Equality(Criterion.DISTRIBUTION, False, detail)
    detail = f"same distribution of {', '.join(paths)} ({least} samples each, p = {corrected:.2f})"
    return Equality(Criterion.DISTRIBUTION, True, detail)


def mean_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the p-value of equal means, by Welch's test in its large-sample form."""
    error = math.sqrt(statistics.variance(a) / len(a) + statistics.variance(b) / len(b))
    distance = abs(statistics.fmean(a) - statistics.fmean(b))
    if error == 0:
        return 1.0 if distance == 0 else 0.0
    return math.erfc(distance / error / math.sqrt(2))


def kolmogorov_smirnov(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the asymptotic p-value of the two-sample Kolmogorov-Smirnov test."""
    one, two = sorted(a), sorted(b)
    i = j = 0
    distance = 0.0
    while i < len(one) and j < len(two):
        value = min(one[i], two[j])
        while i < len(one) and one[i] == value:
            i += 1
        while j < len(two) and two[j] == value:
            j += 1
        distance = max(distance, abs(i / len(one) - j / len(two)))
    scaled = distance * math.sqrt(len(one) * len(two) / (len(one) + len(two)))
    if scaled < 0.2:
        return 1.0
    series = math.fsum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2 * series))


def _pooled(outputs: Outputs, index: int) -> array[float]:
    pooled = array("d")
    for step in outputs:
        pooled.extend(step[index].values)
    return pooled


def _first_values(a: Leaf, b: Leaf) -> str:
    for x, y in zip(a.values, b.values, strict=True):
        if x != y and not (math.isnan(x) and math.isnan(y)):
            return f"{x:.9g} against {y:.9g}"
    return "its bits"


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"
