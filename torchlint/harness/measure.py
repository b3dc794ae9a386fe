"""Timing two programs against each other: own processes, the same cores, A B B A, round after round."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.counters import Counters
from torchlint.harness.intervals import LEAST_ROUNDS, outliers, round_ratio
from torchlint.harness.processes import Launcher, Program, settle, usable_cores

_WARM_STEPS = 3
_HARD_LIMIT = 4.0
"""A single answer may take this many times the budget of the case before the program counts as hung."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    rounds: int = 8
    budget: float = 30.0
    """Seconds for a case, all rounds together. A step that is longer than its share is still run once a round, but
    once they are spent, there are no more rounds than an interval needs."""

    block: float = 0.03
    """Seconds that a block of steps takes at least: far above the clock's resolution and the cost of asking, and so
    short that what slows the machine down for a while slows both blocks of a pair."""

    warm: float = 0.3
    """Seconds of warm-up for each process, and three steps at least."""

    most_pairs: int = 60
    """So many pairs of blocks are enough for a round."""

    @property
    def timeout(self) -> float:
        """Seconds after which a program that does not answer is given up."""
        return max(180.0, self.budget * _HARD_LIMIT)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one variant costs."""

    step_ms: float
    """Median over all blocks, by the host's clock."""

    device_ms: float | None
    """Median over all blocks, by CUDA events."""

    blocks: int
    outliers: int
    counters: Counters


@dataclass(frozen=True, slots=True)
class Timing:
    """Original against fixed."""

    time_ratios: tuple[float, ...]
    """Of each round: time of the original over time of the fixed, so more than 1 is a gain."""

    memory_ratios: tuple[float, ...]
    """Of each round: peak memory of the original over that of the fixed; empty where it is not known."""

    original: Cost
    fixed: Cost


@dataclass(slots=True)
class _Variant:
    text: str
    host: list[float]
    device: list[float]
    counters: list[Counters]

    def cost(self) -> Cost:
        device = statistics.median(self.device) * 1000 if self.device else None
        host = statistics.median(self.host) * 1000
        return Cost(host, device, len(self.host), outliers(self.host), self.counters[0])


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs run: the device, how their processes start, how long they may take, and a folder for them.

    Cores differ in speed from second to second (virtual machines share them with others), by far more than processes
    do: two programs on a core each are compared core with core. So both programs of a round, of which only one works
    at a time, get the same ``cores``.
    """

    device: str
    launcher: Launcher
    plan: Plan
    folder: Path
    cores: int = 0
    """How many cores a program keeps to while it is timed; 0 for all."""

    def program(self, name: str, text: str, cores: frozenset[int] = frozenset()) -> Program:
        """Return a program that is being set up in a process of its own; wait for it with ``ready``."""
        return Program(self.folder / name, self.launcher, text, self.device, self.plan.timeout, cores)

    def cores_of(self, number: int) -> frozenset[int]:
        """Return the cores of a round's programs, others in each round; empty for all."""
        usable = usable_cores()
        if not 0 < self.cores < len(usable):
            return frozenset()
        return frozenset(usable[(number * self.cores + index) % len(usable)] for index in range(self.cores))


def measure(place: Place, original: str, fixed: str, tick: Callable[[], None], *, memory: bool = False) -> Timing:
    """Return the timing of two programs; ``tick`` is called after each round.

    Args:
        place: where they run.
        original: the text of the first program.
        fixed: the text of the other one.
        tick: called after each round.
        memory: count in every round what a step needs, and not in the first one only.

    Raises:
        ProgramError: a program failed or hung.
    """
    one, two = _Variant(original, [], [], []), _Variant(fixed, [], [], [])
    rounds = place.plan.rounds
    deadline = time.perf_counter() + place.plan.budget
    ratios: list[float] = []
    for number in range(rounds):
        if number >= LEAST_ROUNDS and time.perf_counter() > deadline:
            break
        share = (deadline - time.perf_counter()) / (rounds - number)
        pairs = _round(place, one, two, share, number, counted=memory or number == 0)
        ratios.append(round_ratio(one.host[-pairs:], two.host[-pairs:]))
        tick()
    peaks = [(a.peak_bytes, b.peak_bytes) for a, b in zip(one.counters, two.counters, strict=True)]
    found = tuple(a / b for a, b in peaks if a and b)
    return Timing(tuple(ratios), found if len(found) == len(ratios) else (), one.cost(), two.cost())


def _round(place: Place, one: _Variant, two: _Variant, share: float, number: int, *, counted: bool) -> int:
    """Run one round in two fresh processes and return how many pairs of blocks it took."""
    began, plan, cores = time.perf_counter(), place.plan, place.cores_of(number)
    # Who starts first, and in which folder, costs a fifth of a percent: each program does in half of the rounds.
    early, late = (one, two) if number % 2 == 0 else (two, one)
    with place.program("first", early.text, cores) as a, place.program("other", late.text, cores) as b:
        both = (a.ready(), b.ready())
        slowest = max(program.warm(plan.warm, _WARM_STEPS) for program in both)
        steps = max(1, math.ceil(plan.block / slowest))
        left = share - (time.perf_counter() - began)
        pairs = min(plan.most_pairs, max(1, int(left / (2 * steps * slowest))))
        order = ((a, early), (b, late))
        for pair in range(pairs):
            for program, variant in order if pair % 2 == 0 else order[::-1]:
                if place.cores != 1:
                    settle()
                elapsed = program.block(steps)
                variant.host.append(elapsed.host)
                if elapsed.device is not None:
                    variant.device.append(elapsed.device)
        if counted:
            for program in both:
                program.tell("count")
            for program, variant in order:
                variant.counters.append(program.counters())
    return pairs
