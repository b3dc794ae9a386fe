"""What a measurement says about a fix, in one of five words."""

from __future__ import annotations

from enum import Enum

from torchlint.harness.case import Quantity
from torchlint.harness.intervals import Interval

LEAST_EFFECT = 0.02
"""A smaller change of time or memory is not worth a claim, and within reach of what the method gets wrong."""

VAGUE = 0.1
"""An interval wider than this to either side comes from a machine that does other work too. Its noise is not tame, so
a claim must clear 1 by as much."""


class Verdict(str, Enum):
    """The outcome of a case."""

    CONFIRMED = "confirmed"
    NO_EFFECT = "no effect"
    SLOWER = "slower"
    DIFFERENT = "different"
    NOT_MEASURABLE = "not measurable"


def judge(quantity: Quantity, time: Interval, memory: Interval | None) -> tuple[Verdict, str]:
    """Return the verdict on programs that compute the same, with a sentence where one is needed."""
    if quantity is Quantity.MEMORY and memory is not None:
        verdict, reason = _judge(memory, "needs more memory")
        if time.high < 1 - LEAST_EFFECT:
            return Verdict.SLOWER, f"memory is {memory.ratio:.2f}x, but a step takes longer"
        return verdict, reason
    if quantity is Quantity.MEMORY:
        return Verdict.NOT_MEASURABLE, "the device does not tell how much memory a program needs"
    return _judge(time, "")


def _judge(interval: Interval, worse: str) -> tuple[Verdict, str]:
    margin = 1 + VAGUE if interval.half_width > VAGUE else 1.0
    if interval.low > margin and interval.ratio >= 1 + LEAST_EFFECT:
        return Verdict.CONFIRMED, ""
    if interval.high < 1 / margin and interval.ratio <= 1 / (1 + LEAST_EFFECT):
        return Verdict.SLOWER, worse
    if interval.half_width > VAGUE:
        return Verdict.NO_EFFECT, "none that stands out from the noise of this machine"
    return Verdict.NO_EFFECT, ""
