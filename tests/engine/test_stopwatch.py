"""Times of stages and rules."""

from __future__ import annotations

import pytest

from torchlint.engine import stopwatch
from torchlint.engine.stopwatch import ANSWERS, Stopwatch


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stopwatch, "perf_counter", made)
    return made


class Rule:
    """A question whose first answer takes the model long."""

    def __init__(self, clock: Clock, seconds: list[float]) -> None:
        self.clock = clock
        self.seconds = seconds
        self.asked = 0

    def __call__(self) -> int:
        self.clock.now += self.seconds[self.asked]
        self.asked += 1
        return self.asked


def test_a_stage_is_summed_even_if_it_fails(clock: Clock) -> None:
    watch = Stopwatch()

    def draft(seconds: float, error: Exception | None = None) -> None:
        with watch.time("draft"):
            clock.now += seconds
            if error is not None:
                raise error

    draft(2)
    with pytest.raises(ValueError, match="no"):
        draft(3, ValueError("no"))
    assert watch.seconds == {"draft": 5}


def test_a_rule_is_asked_once(clock: Clock) -> None:
    watch, rule = Stopwatch(), Rule(clock, [5.0])
    assert watch.ask("TL1", rule) == 1
    assert watch.seconds == {"TL1": 5}


def test_what_a_second_answer_takes_is_the_time_of_the_rule(clock: Clock) -> None:
    watch, rule = Stopwatch(asks_twice=True), Rule(clock, [5.0, 2.0, 3.0, 4.0])
    assert watch.ask("TL1", rule) == 1  # the first answer counts
    assert watch.seconds == {"TL1": 2, ANSWERS + "TL1": 3}
    watch.ask("TL1", rule)  # the second time took longer: all of it is the rule's
    assert watch.seconds == {"TL1": 5, ANSWERS + "TL1": 3}


def test_a_rule_that_fails_is_timed_and_not_asked_again(clock: Clock) -> None:
    def fail() -> None:
        clock.now += 1
        raise ValueError("broken")

    watch = Stopwatch(asks_twice=True)
    with pytest.raises(ValueError, match="broken"):
        watch.ask("TL1", fail)
    assert watch.seconds == {"TL1": 1}
