"""Where the time went: each stage and rule, relative to the parse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchlint.report.data import Report

STAGES = ("screen", "draft", "parse", "model", "locate", "suppress")


def profile_lines(report: Report) -> Iterator[str]:
    """Yield a table of seconds, summed over all files, and their share of the parse."""
    seconds: Counter[str] = Counter()
    for result in report.results:
        seconds.update(result.timings)
    parse = seconds["parse"] or float("inf")
    rules = sorted((name for name in seconds if name not in STAGES), key=lambda name: -seconds[name])
    yield f"{'stage':<40} {'seconds':>9} {'of parse':>9}"
    for name in (*STAGES, *rules):
        info = report.rules.get(name)
        words = f"{name} {info.name}" if info else name
        yield f"{words:<40} {seconds[name]:>9.3f} {seconds[name] / parse:>9.1%}"
    yield f"{'all rules':<40} {sum(seconds[name] for name in rules):>9.3f}"
