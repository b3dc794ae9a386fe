from __future__ import annotations

import pytest

from torchlint.harness.case import Quantity
from torchlint.harness.intervals import Interval
from torchlint.harness.verdict import Verdict, judge

NOTHING = Interval(1.0, 0.99, 1.01)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (Interval(1.3, 1.2, 1.4), Verdict.CONFIRMED),
        (Interval(0.8, 0.7, 0.9), Verdict.SLOWER),
        (Interval(1.0, 0.95, 1.05), Verdict.NO_EFFECT),
        (Interval(1.01, 1.005, 1.015), Verdict.NO_EFFECT),  # certain, but too small to claim
        (Interval(0.99, 0.985, 0.995), Verdict.NO_EFFECT),
        (Interval(1.3, 0.9, 1.9), Verdict.NO_EFFECT),
        (Interval(1.3, 1.05, 1.9), Verdict.NO_EFFECT),  # so wide an interval must stay clear of 1
        (Interval(0.76, 0.57, 0.96), Verdict.NO_EFFECT),
        (Interval(3.1, 2.0, 4.0), Verdict.CONFIRMED),
    ],
)
def test_time(interval: Interval, verdict: Verdict) -> None:
    assert judge(Quantity.TIME, interval, None)[0] is verdict


def test_an_interval_too_wide_to_tell_says_so() -> None:
    assert "noise" in judge(Quantity.TIME, Interval(1.1, 0.8, 1.4), None)[1]


def test_memory() -> None:
    assert judge(Quantity.MEMORY, NOTHING, Interval(3.0, 3.0, 3.0))[0] is Verdict.CONFIRMED
    assert judge(Quantity.MEMORY, NOTHING, Interval(0.5, 0.5, 0.5))[0] is Verdict.SLOWER
    assert judge(Quantity.MEMORY, NOTHING, None)[0] is Verdict.NOT_MEASURABLE


def test_memory_at_the_price_of_time_is_slower() -> None:
    assert judge(Quantity.MEMORY, Interval(0.5, 0.4, 0.6), Interval(3.0, 3.0, 3.0))[0] is Verdict.SLOWER
