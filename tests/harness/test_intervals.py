from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from torchlint.harness.intervals import Interval, outliers, ratio_interval, round_ratio, student_quantile


def test_round_ratio_takes_neighbours_together() -> None:
    # The machine slows down by a factor of 10 in the middle: each pair still says 2.
    assert round_ratio([2.0, 2.0, 20.0, 20.0], [1.0, 1.0, 10.0, 10.0]) == pytest.approx(2.0)


def test_interval_of_equal_rounds_is_a_point() -> None:
    assert ratio_interval([1.5] * 5) == Interval(pytest.approx(1.5), pytest.approx(1.5), pytest.approx(1.5))


def test_interval_needs_rounds() -> None:
    with pytest.raises(ValueError, match="at least 5 rounds"):
        ratio_interval([1.0] * 4)


@pytest.mark.parametrize(("degrees", "wanted"), [(4, 2.776), (5, 2.571), (7, 2.365), (20, 2.086)])
def test_student_quantile(degrees: int, wanted: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(wanted, abs=0.01)


def _normal(draw: random.Random) -> float:
    return draw.gauss(0, 0.02)


def _laplace(draw: random.Random) -> float:
    return 0.02 * (draw.expovariate(1) - draw.expovariate(1))


def _disturbed(draw: random.Random) -> float:
    return draw.gauss(0, 0.02 if draw.random() < 0.9 else 0.2)


@pytest.mark.parametrize("noise", [_normal, _laplace, _disturbed])
@pytest.mark.parametrize("rounds", [5, 8, 12])
def test_intervals_of_noise_contain_one_as_often_as_they_promise(
    noise: Callable[[random.Random], float], rounds: int
) -> None:
    draw = random.Random(3)
    found = [ratio_interval([math.exp(noise(draw)) for _ in range(rounds)]) for _ in range(2000)]
    assert 0.93 <= sum(interval.contains(1) for interval in found) / len(found) <= 0.98


def test_outliers_are_counted() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.0, 1.02, 9.0]) == 1
    assert outliers([1.0] * 5 + [2.0]) == 0  # no scale to judge by
