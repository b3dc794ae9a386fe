"""``python -m tests.fuzz.run``: torchlint on mutated fixtures and published files; see ``--help``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tests.corpus.judge import Verdict, every_fix, every_rule, judge_source
from tests.fixture_files import FIXTURES
from tests.fuzz.mutations import Choice, mutated
from torchlint.engine.many import Work, run_many
from torchlint.source import Source, SourceError, read_source, source_from_text

OK, WRONG, INCOMPLETE = 0, 1, 2
_CHUNK = 100
_LARGEST = 40_000
"""Characters of a published file that is still taken: time is better spent on more inputs."""

_SLOW = 20.0
"""Seconds of a processor for one input, a hundred times the usual, after which it counts as one that hangs."""


@dataclass(slots=True)
class Tally:
    """What one chunk of inputs showed; plain data, sent between processes."""

    inputs: int = 0
    before: int = 0
    """Inputs whose original holds a finding."""

    after: int = 0
    """Inputs that hold a finding themselves."""

    python: int = 0
    """Inputs that still parse."""

    applied: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class InputError(AssertionError):
    """An input shows something wrong; the text is the shrunken input."""


def wrongs(source: Source) -> tuple[Verdict, list[str]]:
    """Return the verdict on a source, and what is wrong with what torchlint does to it."""
    verdict = Verdict(str(source.path))
    start = time.process_time()
    judge_source(source, verdict, every_fix, deadline=time.monotonic())
    found = list(verdict.violations)
    taken = time.process_time() - start
    if taken > _SLOW:
        found.append(f"took {taken:.0f} s")
    for diagnostic in every_rule(source).diagnostics:
        place = diagnostic.range
        if not 0 <= place.start <= place.end <= len(source.text):
            found.append(f"{diagnostic.code} stands outside the file")
        found += [
            f"an edit of {diagnostic.code} stands outside the file"
            for edit in (diagnostic.fix.edits if diagnostic.fix else ())
            if not 0 <= edit.range.start <= edit.range.end <= len(source.text)
        ]
    return verdict, found


def run_chunk(number: int, *, bases: Sequence[tuple[str, str, bool]], examples: int, start: int) -> Tally:
    """Return what a number of inputs shows; hypothesis makes the first input that fails as small as it can."""
    tally = Tally()
    firing = [base for base in bases if base[2]]

    @seed(start + number)
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
    def fuzz(data: st.DataObject) -> None:
        choice = Choice(data.draw)
        pool = firing if choice.below(4) else bases
        name, text, has_finding = pool[choice.below(len(pool))]
        changed = mutated(text, choice)
        verdict, found = wrongs(source_from_text(changed, name))
        tally.inputs += 1
        tally.before += has_finding
        codes = {code for code in verdict.findings if code != "TL000"}
        tally.after += bool(codes)
        tally.python += "TL000" not in verdict.findings
        tally.applied.update(code for code, _ in verdict.applied)
        if found:
            raise InputError(f"{name}: {'; '.join(found)}\n{changed}")

    try:
        fuzz()
    except InputError as error:
        tally.failures.append(str(error))
    return tally


def bases_of(paths: Sequence[Path]) -> list[tuple[str, str, bool]]:
    """Return name, text and whether it holds a finding of each file that can be read and is small enough."""
    found = []
    for path in paths:
        try:
            source = read_source(str(path))
        except SourceError:
            continue
        if len(source.text) <= _LARGEST:
            found.append((path.name, source.text, bool(every_rule(source).diagnostics)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 1 after a failure, 2 if too few inputs held a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed gives other inputs")
    parser.add_argument("--jobs", type=int, default=None, metavar="N")
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="FOLDER", help="published files too")
    given_arguments = parser.parse_args(arguments)
    folders = [FIXTURES, *given_arguments.also]
    bases = bases_of([path for folder in folders for path in sorted(folder.rglob("*.py"))])
    chunk = min(_CHUNK, given_arguments.inputs)
    work: Work[int, Tally] = Work(
        partial(run_chunk, bases=bases, examples=chunk, start=given_arguments.seed * 1_000_000),
        size=lambda _: 1_000_000,
        on_death=lambda number, code: Tally(failures=[f"the process of chunk {number} died with {code}"]),
    )
    return report(run_many(work, list(range(-(-given_arguments.inputs // chunk))), jobs=given_arguments.jobs))


def report(tallies: Sequence[Tally]) -> int:
    """Print what was seen and return the exit code."""
    total = Tally()
    for tally in tallies:
        total.inputs += tally.inputs
        total.before += tally.before
        total.after += tally.after
        total.python += tally.python
        total.applied.update(tally.applied)
        total.failures += tally.failures
    for failure in total.failures:
        print(failure, end="\n\n")
    share = max(1, total.inputs)
    print(f"{total.inputs:,} inputs, {total.python / share:.0%} of them Python")
    print(f"{total.before / share:.0%} held a finding before they were changed, {total.after / share:.0%} after")
    print("fixed:", ", ".join(f"{code} in {count:,}" for code, count in sorted(total.applied.items())))
    print(f"{len(total.failures)} failures")
    if total.failures:
        return WRONG
    return OK if total.before >= share / 2 and total.after >= share / 5 else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
