"""Places for a ledger: drawn at random from checkouts of public repositories, for somebody to read and judge."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torchlint.api import check_paths
from torchlint.dev.ledger import Ledger
from torchlint.engine.result import FileResult, Status

Item = TypeVar("Item")


class SampleError(Exception):
    """Nothing can be drawn."""


@dataclass(frozen=True, slots=True)
class Place:
    """A finding, or a hot file in which the rule is silent."""

    repository: str
    commit: str
    path: str
    line: int | None
    message: str

    def row(self) -> str:
        """Return the line of a ledger in which only the verdict and the sentence are missing."""
        line, kind = ("-", "silent") if self.line is None else (str(self.line), "finding")
        return f"{self.repository}\t{self.commit}\t{self.path}\t{line}\t{kind}\t?\t{self.message}"


@dataclass(frozen=True, slots=True)
class Sample:
    """What is drawn, and out of how much."""

    places: tuple[Place, ...]
    findings: int
    """How many findings there are, judged ones and all."""

    repositories: int
    """From how many repositories they come."""


def draw(
    rule: str, checkouts: Sequence[Path], judged: Ledger | None, *, findings: int, silent: int, seed: int
) -> Sample:
    """Return as many findings and silent hot files as are asked for, none of them judged, spread over repositories.

    Raises:
        SampleError: a folder is no checkout named ``owner+name``.
    """
    chance = random.Random(seed)
    commits = {folder: _commit(folder) for folder in checkouts}
    results = {folder: [r for r in _checked(folder, rule) if not _is_test(r.path, folder)] for folder in checkouts}
    known = {(e.repository, e.path, e.line) for e in judged.entries} if judged is not None else set()

    def is_new(place: Place) -> bool:
        return (place.repository, place.path, place.line or 0) not in known

    found = {f: [p for r in results[f] for p in _findings(r, rule, f, commits[f])] for f in checkouts}
    new = {f: _shuffled(filter(is_new, places), chance) for f, places in found.items()}
    quiet = {f: _quiet(results[f], chance) for f in checkouts}
    hot = {f: filter(is_new, _hot(r, f, commits[f])) for f, r in quiet.items()}
    drawn = (*_in_turn(new, findings, chance), *_in_turn(hot, silent, chance))
    return Sample(drawn, sum(map(len, found.values())), sum(map(bool, found.values())))


def _checked(folder: Path, rule: str) -> list[FileResult]:
    """The results of the files that use torch; not of notebooks, whose findings have no line of the file."""
    results = check_paths([folder], select=[rule], isolated=True)
    return [r for r in results if r.status in (Status.CHECKED, Status.SCREENED) and r.path.endswith(".py")]


def _quiet(results: Iterable[FileResult], chance: random.Random) -> list[FileResult]:
    """The files without findings, first those that hold the words to which the rule reacts."""
    shuffled = _shuffled((r for r in results if not r.diagnostics), chance)
    return sorted(shuffled, key=lambda result: result.status is not Status.CHECKED)


def _commit(folder: Path) -> str:
    """What is checked out; of an export the content of the file beside it that is named ``owner+name.sha``."""
    noted = folder.with_name(f"{folder.name}.sha")
    if "+" in folder.name and noted.exists():
        return noted.read_text(encoding="utf-8").strip()
    git = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if git.returncode or "+" not in folder.name:
        raise SampleError(f"{folder}: a checkout of a repository is expected, in a folder named owner+name")
    return git.stdout.strip()


def _is_test(path: str, folder: Path) -> bool:
    parts = Path(path).relative_to(folder).parts
    return not {"test", "tests"}.isdisjoint(parts) or parts[-1].startswith("test_")


def _findings(result: FileResult, rule: str, folder: Path, commit: str) -> Iterator[Place]:
    by_row = {d.start.row: d.message for d in result.diagnostics if d.name == rule}
    for row, message in sorted(by_row.items()):
        yield _place(result, folder, commit, row, message)


def _place(result: FileResult, folder: Path, commit: str, row: int | None, message: str) -> Place:
    path = Path(result.path).relative_to(folder).as_posix()
    return Place(folder.name.replace("+", "/", 1), commit, path, row, " ".join(message.split()))


def _hot(results: Iterable[FileResult], folder: Path, commit: str) -> Iterator[Place]:
    from torchlint.syntax.parse import run_with_large_stack

    for result in results:
        path = result.path
        if run_with_large_stack(lambda path=path: _is_hot(path)):  # type: ignore[misc]
            yield _place(result, folder, commit, None, "read the file: is anything missing?")


def _is_hot(path: str) -> bool:
    """Whether anything in a file runs on every step."""
    import libcst as cst

    from torchlint.semantics.model import Options, build_model
    from torchlint.semantics.process.target import UNKNOWN_TARGET
    from torchlint.source import read_source
    from torchlint.syntax.parse import SyntaxFailure, parse

    parsed = parse(read_source(path))
    if isinstance(parsed, SyntaxFailure):
        return False
    model = build_model(parsed.module, UNKNOWN_TARGET, Options())
    try:
        return any(model.heat(call) is not None for call in model.nodes(cst.Call))
    finally:
        model.release()


def _shuffled(items: Iterable[Item], chance: random.Random) -> list[Item]:
    shuffled = list(items)
    chance.shuffle(shuffled)
    return shuffled


def _in_turn(groups: Mapping[Path, Iterable[Item]], count: int, chance: random.Random) -> tuple[Item, ...]:
    """Return one item of each group in turn, in a random order of groups, until there are enough."""
    queues: list[Iterator[Item]] = [iter(groups[name]) for name in _shuffled(sorted(groups), chance)]
    drawn: list[Item] = []
    while queues and len(drawn) < count:
        for queue in tuple(queues):
            item = next(queue, None)
            if item is None:
                queues.remove(queue)
            elif len(drawn) < count:
                drawn.append(item)
    return tuple(drawn)
