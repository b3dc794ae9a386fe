"""Where the time went: each stage and rule, beside what parsing everything with libcst would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from time import perf_counter

from torchlint.engine.stopwatch import ANSWERS
from torchlint.report.data import Report
from torchlint.source import Source, SourceError, read_source
from torchlint.syntax.parse import parse, run_with_large_stack

STAGES = ("screen", "draft", "parse", "model", "locate", "suppress")


def profile_lines(report: Report) -> Iterator[str]:
    """Yield a table of seconds, summed over all files, and their share of a parse of all files that were looked into.

    Most of those were judged by a draft and not parsed: they are now, one after the other, to have the measure. The
    time of a rule is its own; beside it stands that of the answers which the model worked out for it first.
    """
    seconds: Counter[str] = Counter()
    for result in report.results:
        seconds.update(result.timings)
    looked_into = [result.path for result in report.results if result.timings.keys() & {"draft", "parse"}]
    whole = _parse_seconds(looked_into)
    answers = Counter({name.removeprefix(ANSWERS): time for name, time in seconds.items() if name.startswith(ANSWERS)})
    own = {name: time for name, time in seconds.items() if name not in STAGES and not name.startswith(ANSWERS)}
    yield f"{'stage':<40} {'seconds':>9} {'of a parse':>10}    with the model's answers"
    for name in STAGES:
        yield _row(name, seconds[name], whole)
    for name in sorted(own, key=lambda name: -own[name] - answers[name]):
        info = report.rules.get(name)
        row = _row(f"{name} {info.name}" if info else name, own[name], whole)
        yield f"{row} {own[name] + answers[name]:>9.3f}"
    yield _row("all rules", sum(own.values()), whole)
    yield _row("all of the model", seconds["model"] + sum(answers.values()), whole)
    yield _row("everything", sum(seconds.values()), whole)
    yield _row(f"libcst's parse of all {len(looked_into):,} files", whole, whole)


def _row(words: str, seconds: float, whole: float) -> str:
    return f"{words:<40} {seconds:>9.3f} {seconds / whole if whole else 0:>10.1%}"


def _parse_seconds(paths: Iterable[str]) -> float:
    return sum(run_with_large_stack(partial(_timed_parse, source)) for source in _sources(paths))


def _sources(paths: Iterable[str]) -> Iterator[Source]:
    for path in paths:
        try:
            yield read_source(path)
        except SourceError:
            continue  # gone or changed since it was checked


def _timed_parse(source: Source) -> float:
    start = perf_counter()
    parse(source)
    return perf_counter() - start
