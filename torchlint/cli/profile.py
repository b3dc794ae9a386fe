"""Where the time went: each stage and rule, beside what parsing everything with libcst would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from time import perf_counter

from torchlint.report.data import Report
from torchlint.source import Source, SourceError, read_source
from torchlint.syntax.parse import parse, run_with_large_stack

STAGES = ("screen", "draft", "parse", "model", "locate", "suppress")


def profile_lines(report: Report) -> Iterator[str]:
    """Yield a table of seconds, summed over all files, and their share of a parse of all files that were looked into.

    Most of those were judged by a draft and not parsed: they are now, one after the other, to have the measure.
    """
    seconds: Counter[str] = Counter()
    for result in report.results:
        seconds.update(result.timings)
    looked_into = [result.path for result in report.results if result.timings.keys() & {"draft", "parse"}]
    whole = _parse_seconds(looked_into)
    rules = sorted((name for name in seconds if name not in STAGES), key=lambda name: -seconds[name])
    yield f"{'stage':<40} {'seconds':>9} {'of a parse':>10}"
    for name in (*STAGES, *rules):
        info = report.rules.get(name)
        yield _row(f"{name} {info.name}" if info else name, seconds[name], whole)
    yield _row("all rules", sum(seconds[name] for name in rules), whole)
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
