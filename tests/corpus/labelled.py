"""``python -m tests.corpus.labelled --checkouts FOLDER``: precision and recall on labelled public code; see ``--help``.

Each file was labelled line by line before torchlint saw them: each place that an expert would want reported, near
misses, and what is arguable, which counts neither way. Only coordinates and verdicts are here; the code comes from
clones with their histories, named ``owner/name``, ``owner+name`` or ``name``.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint import check_source

OK, LESS, NOT_RUN = 0, 1, 2
FOLDER = Path(__file__).with_name("labels")
TARGET = "1.8"
"""The oldest torch, for which the labels were made."""

CODES = {
    "zero-workers": ("TL101",),
    "unpinned": ("TL102",),
    "create-then-move": ("TL201", "TL214"),
    "item-in-loop": ("TL202",),
    "host-copy-in-loop": ("TL203",),
    "tensor-control-flow": ("TL204",),
    "blocking-transfer": ("TL205",),
    "empty-cache-in-loop": ("TL206", "TL207"),
    "tensor-of-ndarray": ("TL208",),
    "cat-in-loop": ("TL211",),
    "zero-grad": ("TL301",),
    "retained-graph": ("TL302",),
    "conv-bias-bn": ("TL401",),
    "eval-grad": ("TL501",),
    "detect-anomaly": ("TL601",),
    "debug-api": ("TL602", "TL603", "TL606"),
    "no-cudnn-benchmark": ("TL604", "TL605"),
    "data-parallel": ("TL701",),
}
"""What each label stands for."""

ENOUGH_PRECISION, ENOUGH_RECALL = 0.93, 0.85


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """A file all of which was labelled."""

    sample: str
    repository: str
    commit: str
    path: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit[:10]}:{self.path}"


@dataclass(frozen=True, slots=True)
class Label:
    """What is to be said of one line."""

    line: int
    name: str
    verdict: str
    """``report``, ``silent`` or ``arguable``."""

    def is_near(self, line: int) -> bool:
        """Whether a finding on a line is about this place."""
        return abs(self.line - line) <= 1


def files() -> list[LabelledFile]:
    """Return all labelled files."""
    return [LabelledFile(*row) for row in rows(FOLDER / "files.tsv")]


def labels() -> Mapping[tuple[str, str, str], list[Label]]:
    """Return the labels of each file, by repository, commit and path."""
    found: defaultdict[tuple[str, str, str], list[Label]] = defaultdict(list)
    for repository, commit, path, line, name, verdict, _ in rows(FOLDER / "labels.tsv"):
        found[repository, commit, path].append(Label(int(line), name, verdict))
    return found


def score(found: Iterable[tuple[int, str]], wanted: Sequence[Label]) -> Counter[tuple[str, str]]:
    """Return how many places of one file are hit, missed or falsely reported, by label.

    Args:
        found: the line and code of each finding.
        wanted: the labels of the file.
    """
    lines = {name: {line for line, code in found if code in codes} for name, codes in CODES.items()}
    counted: Counter[tuple[str, str]] = Counter()
    for name, hits in lines.items():
        own = [label for label in wanted if label.name == name]
        for label in own:
            if label.verdict == "report":
                counted[name, "hit" if any(map(label.is_near, hits)) else "missed"] += 1
        for line in hits:
            if not any(label.is_near(line) and label.verdict != "silent" for label in own):
                counted[name, "false"] += 1
    return counted


def text_of(file: LabelledFile, checkouts: Path) -> bytes | None:
    """Return a file as its commit has it, None where no clone has it."""
    return from_clone(file.repository, checkouts, "show", f"{file.commit}:{file.path}")


def from_clone(repository: str, checkouts: Path, *command: str) -> bytes | None:
    """Return what a command of git says in the first clone of a repository in which it succeeds, None if in none."""
    owner, _, name = repository.partition("/")
    for folder in (f"{owner}/{name}", f"{owner}+{name}", name):
        place = checkouts / folder
        git = place / ".git" if (place / ".git").is_dir() else place
        words = ["git", f"--git-dir={git}", *command]
        done = subprocess.run(words, capture_output=True, check=False) if git.is_dir() else None
        if done is not None and done.returncode == 0:
            return done.stdout
    return None


def name_clones(repositories: Iterable[str]) -> None:
    """Say that no folder of clones was given, and what it has to hold."""
    print("NOT RUN: --checkouts FOLDER (or TORCHLINT_CHECKOUTS) says where the clones lie:", file=sys.stderr)
    for repository in sorted(set(repositories)):
        print(f"  git clone https://github.com/{repository}", file=sys.stderr)


def clones(words: Sequence[str] | None, wanted: Iterable[LabelledFile], description: str | None) -> Path | None:
    """Return the folder of clones that the command line names; without one say which files it has to hold, and None."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkouts", type=Path, default=os.environ.get("TORCHLINT_CHECKOUTS"))
    named: Path | None = parser.parse_args(words).checkouts
    if named is None:
        name_clones(file.repository for file in wanted)
    return named


def main(words: Sequence[str] | None = None) -> int:
    """Print precision and recall by label and by sample."""
    checkouts = clones(words, files(), __doc__)
    if checkouts is None:
        return NOT_RUN
    by_file, by_sample = labels(), defaultdict[str, Counter[tuple[str, str]]](Counter)
    absent = []
    for file in files():
        data = text_of(file, checkouts)
        if data is None:
            absent.append(file)
            continue
        found = check_source(data.decode("utf-8"), select=["ALL"], target_torch=TARGET, lint_tests=True)
        counted = score(
            [(d.start.row, d.code) for d in found], by_file.get((file.repository, file.commit, file.path), ())
        )
        by_sample[file.sample] += counted
    total = sum(by_sample.values(), Counter[tuple[str, str]]())
    for name in CODES:
        print(_line(name, _of(total, name)))
    for sample, counted in sorted(by_sample.items()):
        print(_line(sample, _of(counted)))
    print(_line("all", _of(total)))
    for file in absent:
        print(f"NOT RUN: {file}: no clone has it")
    return NOT_RUN if absent else OK if _is_enough(_of(total)) else LESS


def rows(path: Path) -> list[list[str]]:
    """Return the rows of a table after its heading."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def _of(counted: Mapping[tuple[str, str], int], name: str | None = None) -> Counter[str]:
    found: Counter[str] = Counter()
    for (label, outcome), count in counted.items():
        if name in (None, label):
            found[outcome] += count
    return found


def _precision(counted: Counter[str]) -> float:
    return counted["hit"] / max(1, counted["hit"] + counted["false"])


def _recall(counted: Counter[str]) -> float:
    return counted["hit"] / max(1, counted["hit"] + counted["missed"])


def _is_enough(counted: Counter[str]) -> bool:
    return _precision(counted) >= ENOUGH_PRECISION and _recall(counted) >= ENOUGH_RECALL


def _line(name: str, counted: Counter[str]) -> str:
    counts = "  ".join(f"{outcome} {counted[outcome]:4d}" for outcome in ("hit", "missed", "false"))
    shares = f"  precision {_precision(counted):.3f}  recall {_recall(counted):.3f}" if counted else ""
    return f"{name:20s}  {counts}{shares}"


if __name__ == "__main__":
    sys.exit(main())
