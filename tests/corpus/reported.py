"""``python -m tests.corpus.reported --checkouts FOLDER``: how many reported bugs are found; see ``--help``.

Each case is a place that a fix in the history of a public project, or a thread about it, names: the code as it was
before. A sample was written down before torchlint saw it, and led to mends afterwards. Only coordinates are here; the
code comes from clones with their histories, named ``owner/name``, ``owner+name`` or ``name``.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.labelled import LESS, NOT_RUN, OK, LabelledFile, clones, rows, text_of
from torchlint import check_source

CASES = Path(__file__).with_name("reported") / "cases.tsv"
ENOUGH = 0.8
SLACK = 2
"""How many lines a finding may stand away from the place."""


@dataclass(frozen=True, slots=True)
class Case:
    """A place in the code before its fix."""

    file: LabelledFile
    line: int
    codes: tuple[str, ...]
    """The rules any of which names the bug."""

    sentence: str

    def is_found(self, text: str, found: Iterable[tuple[int, str]]) -> bool:
        """Return whether a finding stands at the place: near its line, in its statement, in its function."""
        first, last = _span(text, self.line)
        first, last = min(first, self.line - SLACK), max(last, self.line + SLACK)
        return any(code in self.codes and first <= line <= last for line, code in found)


def cases() -> list[Case]:
    """Return all cases."""
    return [
        Case(LabelledFile(sample, repository, commit, path), int(line), tuple(codes.split(",")), sentence)
        for sample, repository, commit, path, line, codes, sentence in rows(CASES)
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Print what is missed, and the share that is found by sample."""
    known = cases()
    checkouts = clones(words, (case.file for case in known), __doc__)
    if checkouts is None:
        return NOT_RUN
    counted: Counter[tuple[str, bool]] = Counter()
    absent = []
    for case in known:
        data = text_of(case.file, checkouts)
        if data is None:
            absent.append(case)
            continue
        text = data.decode("utf-8")
        found = [(d.start.row, d.code) for d in check_source(text, select=["ALL"], lint_tests=True)]
        outcome = case.is_found(text, found)
        counted[case.file.sample, outcome] += 1
        if not outcome:
            print(f"missed  {','.join(case.codes):12s} {case.file}:{case.line}  {case.sentence}")
    for sample in dict.fromkeys(case.file.sample for case in known):
        print(_line(sample, counted[sample, True], counted[sample, False]))
    hits = sum(count for (_, outcome), count in counted.items() if outcome)
    print(_line("all", hits, sum(counted.values()) - hits))
    for case in absent:
        print(f"NOT RUN: {case.file}: no clone has it")
    return NOT_RUN if absent else OK if hits >= ENOUGH * sum(counted.values()) else LESS


def _span(text: str, line: int) -> tuple[int, int]:
    """The lines of the simple statement, or of the function, that begins or stands at a line."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a program of Python 2
        return line, line
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or node.end_lineno is None:
            continue
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if (is_function and node.lineno == line) or (
            not hasattr(node, "body") and node.lineno <= line <= node.end_lineno
        ):
            return node.lineno, node.end_lineno
    return line, line


def _line(name: str, hits: int, misses: int) -> str:
    return f"{name:8s} found {hits:4d}  missed {misses:4d}  {hits / max(1, hits + misses):.0%}"


if __name__ == "__main__":
    sys.exit(main())
