"""One search: programs around the anti-pattern of a rule, each run beside what the safe fix makes of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.machinery import PathFinder

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, FlakyFailure

from tests.fixture_files import parse_target
from tests.refute.choices import Choices
from tests.refute.machine import Played, run
from tests.refute.observe import Difference, differences
from tests.torch.stand_in import FAKE_CUDA, META, VALUES, StandIn
from torchlint.engine.fix import fix_file
from torchlint.registry import rules
from torchlint.settings import Settings
from torchlint.source import source_from_text
from torchlint.syntax.parse import run_with_large_stack

CHUNK = 100
_CANNOT_PLAY = "not linked with support for cuda"
"""What a torch without CUDA says of the little that it cannot do with tensors that only play CUDA ones."""


@dataclass(frozen=True, slots=True)
class Program:
    """A script that may hold the anti-pattern; all that its names hold in the end is compared."""

    text: str
    target_torch: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """How to look for programs that the safe fix of a rule changes."""

    rule: str
    """The code of the rule."""

    program: Callable[[Choices], Program]
    places: tuple[StandIn, ...] = (VALUES, META, FAKE_CUDA)
    played: Played = nullcontext
    """What the machine has besides the devices."""

    needs: str = ""
    """The package, besides torch and NumPy, that the programs import."""

    is_the_fix: Callable[[Difference], bool] = field(default=lambda difference: False)
    """Whether a difference is the very thing that the fix says it changes."""


def missing(search: Search) -> str:
    """Return the package that a search needs and that is not installed, empty if there is none.

    What plays the package in a program that ran before does not count.
    """
    return search.needs if search.needs and PathFinder.find_spec(search.needs) is None else ""


@dataclass(slots=True)
class Tally:
    """What a number of programs showed; plain data, sent between processes."""

    rule: str
    """The code of the rule."""

    tried: int = 0
    fixed: int = 0
    """Programs that a safe fix rewrites."""

    judged: int = 0
    """Those among them that run, so that they can be compared; no two are alike."""

    places: Counter[str] = field(default_factory=Counter)
    """Where they ran."""

    refutations: list[str] = field(default_factory=list)


class RefutedError(AssertionError):
    """A program does something else after its safe fix; the text shows both."""


Fixer = Callable[[str, Program], str]


def safe_fix(rule: str, program: Program) -> str:
    """Return what the safe fixes of a rule make of a program."""
    source, target = source_from_text(program.text, "program.py"), parse_target(program.target_torch)
    return fix_file(source, Settings(), [each for each in rules() if each.code == rule], target, unsafe=False).text


@dataclass(slots=True)
class _Sides:
    """A program and its fixed self."""

    search: Search
    before: str
    after: str
    recorded: bool = False
    """Whether one of them has recorded a graph so far."""

    def compared(self, place: StandIn) -> list[Difference] | None:
        """Return in what the runs at one place differ, None if the program fails there or is never the same twice."""
        if place.fake and self.recorded:
            return None
        expected = run(self.before, place, self.search.played)
        if expected.error:
            return None
        got = run(self.after, place, self.search.played)
        if _CANNOT_PLAY in got.error:
            return None
        self.recorded |= expected.recorded or got.recorded
        found = self._that_count(differences(expected, got))
        if found and self._that_count(differences(expected, run(self.before, place, self.search.played))):
            return None
        return found

    def _that_count(self, found: list[Difference]) -> list[Difference]:
        return [difference for difference in found if not self.search.is_the_fix(difference)]


def judge(search: Search, program: Program, fixer: Fixer, tally: Tally, known: set[str]) -> None:
    """Count a program and compare it with its fixed self.

    Raises:
        RefutedError: the two differ.
    """
    tally.tried += 1
    after = fixer(search.rule, program)
    if after == program.text:
        return
    tally.fixed += 1
    sides = _Sides(search, program.text, after)
    for place in search.places:
        found = sides.compared(place)
        if found is None and place is VALUES:
            return
        if found:
            words = "\n".join(f"  {difference}" for difference in found[:6])
            raise RefutedError(f"{search.rule} at {place.name}:\n{words}\n{program.text}---- becomes\n{after}")
        if found is not None:
            tally.places[place.name] += program.text not in known
    tally.judged += program.text not in known
    known.add(program.text)


def run_chunk(
    search: Search, number: int, tally: Tally, known: set[str], examples: int = CHUNK, fixer: Fixer = safe_fix
) -> None:
    """Try a number of programs; hypothesis makes the first one that is refuted as small as it can."""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
    )
    @given(st.data())
    def refute(data: st.DataObject) -> None:
        judge(search, search.program(Choices(data.draw)), fixer, tally, known)

    try:
        refute()
    except RefutedError as error:
        tally.refutations.append(str(error))
    except Flaky as error:
        first = error.exceptions[0] if isinstance(error, FlakyFailure) else error
        tally.refutations.append(f"a difference that comes and goes: {first}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging the errors of programs that fail."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def run_search(search: Search, *, wanted: int, start: int, fixer: Fixer = safe_fix) -> Tally:
    """Return what is seen until so many programs with a safe fix were compared, or three were refuted."""
    tally, known = Tally(search.rule), set[str]()

    def look() -> None:
        for number in range(max(4, 10 * wanted // CHUNK)):
            missing = wanted - tally.judged
            if missing <= 0 or len(tally.refutations) == 3:
                break
            run_chunk(search, start * 1_000_000 + number, tally, known, min(CHUNK, 2 * missing + 8), fixer)

    with _quiet():
        run_with_large_stack(look)  # which each check would start a thread for
    return tally
