from __future__ import annotations

import math
import random

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


@pytest.mark.parametrize("rounds", [6, 8])
def test_intervals_of_noise_contain_one_as_often_as_they_promise(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.harness.intervals._RESAMPLES", 400)
    draw = random.Random(3)
    hits = [
        ratio_interval([math.exp(draw.gauss(0, 0.02)) for _ in range(rounds)], seed).contains(1) for seed in range(300)
    ]
    assert 0.88 <= sum(hits) / len(hits) <= 0.98


def test_outliers_are_counted() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.0, 1.02, 9.0]) == 1
    assert outliers([1.0] * 5 + [2.0]) == 0  # no scale to judge by
