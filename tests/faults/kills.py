"""``python -m tests.faults.kills``: ``fix --apply`` over a tree, killed at random moments; see ``--help``."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.command import contents, strangers
from tests.fixture_files import FIXTURES

OK, WRONG, INCOMPLETE = 0, 1, 2
_FIX = tuple("fix --apply --unsafe-fixes --isolated --select ALL --lint-tests --jobs 2 --exit-zero".split())
_COPIES = 1
_WRITING = 0.03
"""Seconds within which the kills fall that wait until the first file is written."""
_KILLS_PER_TREE = 2
_MOST_RUNS = 3
"""Runs for each kill that is wanted: some end before they can be killed."""


def make_tree(folder: Path, copies: int, files: int | None) -> None:
    """Fill a folder with copies of the fixtures that have findings, or of the first of them."""
    for number in range(copies):
        for path in sorted(FIXTURES.glob("*/bad.py"))[:files]:
            target = folder / f"part{number}" / f"{path.parent.name.replace('-', '_')}.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def fix(folder: Path, kill_after: float | None = None, *, writing: bool = False) -> bool:
    """Run the command over a folder and return whether it was killed, with all its processes.

    The seconds count from the start, or with ``writing`` from when the first file is written.
    """
    command = [sys.executable, "-m", "torchlint", *_FIX, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=FIXTURES.parent
    ) as process:
        if writing:
            before = _stamp(folder)
            while process.poll() is None and _stamp(folder) == before:
                time.sleep(0.001)
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def _stamp(folder: Path) -> list[int]:
    """Return what changes when a file in the folders is made or replaced."""
    return [part.stat().st_mtime_ns for part in sorted(folder.iterdir())]


def wrongs(folder: Path, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[list[str], int]:
    """Return what is wrong in a tree after a kill, and how many of its files are fixed."""
    found = contents(folder)
    wrong = [f"{name} is lost" for name in old if name not in found]
    wrong += [f"{name} is neither old nor new" for name, data in found.items() if data not in (old[name], new[name])]
    return wrong, sum(data == new[name] != old[name] for name, data in found.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 1 after a failure, 2 if the kills came too early or too late."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--copies", type=int, default=_COPIES, metavar="N", help="of each fixture")
    parser.add_argument("--files", type=int, metavar="N", help="how many fixtures, if not all")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    choice = parser.parse_args(arguments)
    generator = random.Random(choice.seed)
    with tempfile.TemporaryDirectory() as name:
        return _run(Path(name), choice, generator)


def _run(folder: Path, choice: argparse.Namespace, generator: random.Random) -> int:
    kills: int = choice.kills
    whole, tree = folder / "whole", folder / "tree"
    make_tree(whole, choice.copies, choice.files)
    old = contents(whole)
    start = time.monotonic()
    fix(whole)
    seconds = time.monotonic() - start
    new = contents(whole)
    seen: Counter[str] = Counter()
    failures: list[str] = []
    for number in range(_MOST_RUNS * kills):
        if seen["killed"] == kills:
            break
        if number % _KILLS_PER_TREE == 0:
            failures += _completed(tree, new) if number else []
            shutil.rmtree(tree, ignore_errors=True)
            make_tree(tree, choice.copies, choice.files)
        writing = number % 2 == 0
        was_killed = fix(tree, generator.uniform(0, _WRITING if writing else seconds), writing=writing)
        wrong, fixed = wrongs(tree, old, new)
        failures += wrong
        seen["runs"] += 1
        seen["killed"] += was_killed
        seen["in the middle"] += was_killed and 0 < fixed < len(old)
        seen["with a temporary file left"] += bool(strangers(tree))
    failures += _completed(tree, new)
    return _report(kills, len(old), seen, failures)


def _completed(tree: Path, new: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong once a run that nobody kills has gone over the tree."""
    fix(tree)
    wrong = [f"{name} is not fixed by the next run" for name, data in contents(tree).items() if data != new[name]]
    return wrong + [f"{name} is left" for name in strangers(tree)]


def _report(kills: int, files: int, seen: Mapping[str, int], failures: Sequence[str]) -> int:
    for failure in failures:
        print(failure)
    print(f"{seen['killed']} of {seen['runs']} runs over {files} files were killed, {seen['in the middle']} half done")
    print(f"a temporary file was left by {seen['with a temporary file left']} runs, and none after the next whole run")
    print(f"{len(failures)} failures")
    if failures:
        return WRONG
    return OK if seen["killed"] == kills and seen["in the middle"] >= kills / 10 else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
