"""``python -m tests.corpus.suites --checkouts FOLDER``: test suites of public projects, before and after the fixes.

Each suite is run twice on the code as its commit has it, then with the safe fixes in the package and in its tests, then
with all fixes in the package. Only coordinates are here; the code comes from clones with their histories, named
``owner/name``, ``owner+name`` or ``name``. See ``--help``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.labelled import name_clones, rows
from tests.corpus.suite_runs import NotRun, Suite, changed, executed, fixed, missing, passed_twice, run, taken

OK, BROKEN, NOT_RUN = 0, 1, 2
FOLDER = Path(__file__).with_name("suites")


@dataclass(frozen=True, slots=True)
class Expected:
    """A test that fails after an unsafe fix, which announces just that."""

    suite: str
    test: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What fixes did to a suite."""

    applied: Counter[str]
    places: int
    executed: int
    changed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one suite."""

    suite: Suite
    tests: int
    """How many passed twice as the code is."""

    left_out: int
    """How many did not."""

    safe: Outcome
    everything: Outcome


def suites() -> list[Suite]:
    """Return all suites."""
    return [
        Suite(name, repository, commit, package, *(tuple(cell.split()) for cell in cells))
        for name, repository, commit, package, *cells in rows(FOLDER / "suites.tsv")
    ]


def expected() -> list[Expected]:
    """Return the changes that unsafe fixes announce."""
    return [Expected(*row) for row in rows(FOLDER / "expected.tsv")]


def announced(suite: Suite, test: str, known: Sequence[Expected]) -> Expected | None:
    """Return the entry about a test of a suite, which may be about all parameters of it."""
    for entry in known:
        if entry.suite == suite.name and entry.test in (test, test.partition("[")[0]):
            return entry
    return None


def tried(suite: Suite, folder: Path, options: argparse.Namespace) -> Trial:
    """Return what becomes of a suite: twice as it is, then with safe fixes, then with all.

    Raises:
        NotRun: it could not be tried.
    """
    lacking = missing(suite.requirements, options.python)
    if lacking:
        raise NotRun(f"pip install {' '.join(lacking)}")
    original, safe, everything = (folder / name for name in ("original", "safe", "all"))
    taken(suite, options.checkouts, original)
    with_tests = [(str(safe / suite.package),), ("--lint-tests", *(str(safe / test) for test in suite.tests))]
    fixes = {
        safe: fixed(original, safe, options.select, with_tests),
        everything: fixed(original, everything, options.select, [("--unsafe-fixes", str(everything / suite.package))]),
    }
    traced = sorted({place.path for done in fixes.values() for place in done.places})
    first, second = (run(suite, original, options.python, traced) for _ in range(2))
    passed = passed_twice(first.outcomes, second.outcomes)
    if not passed:
        raise NotRun("no test passes twice")
    found = []
    for tree, done in fixes.items():
        ran = executed(done.places, first.lines)
        found.append(Outcome(done.applied, len(done.places), ran, _changed(suite, tree, passed, traced, options)))
    return Trial(suite, len(passed), len(first.outcomes) - len(passed), *found)


def _changed(
    suite: Suite, tree: Path, passed: set[str], traced: Sequence[str], options: argparse.Namespace
) -> Mapping[str, str]:
    """What became of the tests that fail twice with the fixes; a test near its time limit fails once."""
    worse = changed(passed, run(suite, tree, options.python, traced).outcomes)
    return changed(set(worse), run(suite, tree, options.python, traced).outcomes) if worse else worse


# The program


def told(trial: Trial, known: Sequence[Expected]) -> Iterator[str]:
    """Yield the lines about a suite."""
    yield f"{trial.suite}: {trial.tests} tests pass twice, {trial.left_out} do not and are not compared"
    for name, outcome in (("safe fixes", trial.safe), ("all fixes", trial.everything)):
        rules = ", ".join(f"{code} {count}" for code, count in sorted(outcome.applied.items()))
        yield (
            f"  {name}: {outcome.applied.total()} applied ({rules or 'none'}), {outcome.executed} of "
            f"{outcome.places} changed statements executed, {len(outcome.changed)} tests changed"
        )
        for test, state in outcome.changed.items():
            entry = announced(trial.suite, test, known) if outcome is trial.everything else None
            yield f"    {state}: {test}" + (f"  expected of {entry.rule}: {entry.reason}" if entry else "")


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus.suites",
        description="Run the test suites of public projects before and after their fixes. Ends with 1 if a test that "
        "passed twice fails after safe fixes, with 2 if a suite could not be run.",
    )
    parser.add_argument("--checkouts", type=Path, default=os.environ.get("TORCHLINT_CHECKOUTS"))
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has what the suites need")
    parser.add_argument("--select", default="ALL", help="rules whose fixes to try; default: ALL")
    parser.add_argument("--keep", type=Path, help="a folder for the trees, to look at them afterwards")
    parser.add_argument("names", nargs="*", help="names of suites; default: all")
    options = parser.parse_args(words)
    wanted = [suite for suite in suites() if not options.names or suite.name in options.names]
    if options.checkouts is None:
        name_clones(suite.repository for suite in wanted)
        return NOT_RUN
    return _verdict([_trial(suite, options) for suite in wanted])


def _trial(suite: Suite, options: argparse.Namespace) -> Trial | None:
    with tempfile.TemporaryDirectory(prefix="torchlint-suites-") as name:
        folder = (options.keep or Path(name)).absolute() / suite.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            trial = tried(suite, folder, options)
        except NotRun as reason:
            print(f"NOT RUN: {suite}: {reason}", flush=True)
            return None
    print("\n".join(told(trial, expected())), flush=True)
    return trial


def _verdict(trials: Sequence[Trial | None]) -> int:
    done = [trial for trial in trials if trial is not None]
    broken = sum(len(trial.safe.changed) for trial in done)
    print(
        f"{len(done)} suites, {sum(trial.tests for trial in done)} tests: safe fixes change {broken}, "
        f"all fixes {sum(len(trial.everything.changed) for trial in done)}; {len(trials) - len(done)} suites not run"
    )
    return BROKEN if broken else NOT_RUN if len(done) < len(trials) else OK


if __name__ == "__main__":
    sys.exit(main())
