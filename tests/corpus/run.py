"""``python -m tests.corpus.run``: torchlint over pinned packages, every fix included; see ``--help``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import platformdirs

from tests.corpus.judge import Fixer, Verdict, every_fix, judge
from tests.corpus.packages import PINS, NotAvailable, downloaded, unpacked
from torchlint.engine.many import Work, run_many

OK, VIOLATIONS, INCOMPLETE = 0, 1, 2
_EVERYTHING = ("--isolated", "--select", "ALL", "--lint-tests", "--exclude", "/nothing/", "--color", "never")


@dataclass(slots=True)
class Tree:
    """What was seen in one tree of files."""

    name: str
    verdicts: list[Verdict]
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    """Of the tree as a whole, by the command line."""

    def all_violations(self) -> list[str]:
        """Return what went wrong, with the files."""
        inside = [f"{verdict.path}: {wrong}" for verdict in self.verdicts for wrong in verdict.violations]
        return [f"{self.name}: {wrong}" for wrong in (*inside, *self.violations)]


def judged_tree(
    name: str, folder: Path, *, jobs: int | None, seconds: float, command_line: bool = True, fixer: Fixer = every_fix
) -> Tree:
    """Return the verdicts on all Python files of a folder, which the command line then fixes in place."""
    start = time.monotonic()
    paths = sorted(str(path) for path in folder.rglob("*.py") if path.is_file())
    work: Work[str, Verdict] = Work(
        partial(judge, deadline=start + seconds, fixer=fixer), size=os.path.getsize, on_death=_died
    )
    tree = Tree(name, run_many(work, paths, jobs=jobs))
    if command_line:
        tree.violations += _by_command_line(folder, tree.verdicts, jobs)
    for verdict in tree.verdicts:
        verdict.path = Path(verdict.path).relative_to(folder).as_posix()
    tree.seconds = time.monotonic() - start
    return tree


def _died(path: str, code: int | None) -> Verdict:
    return Verdict(path, violations=[f"the process died with {code}"])


def _by_command_line(folder: Path, verdicts: Iterable[Verdict], jobs: int | None) -> list[str]:
    """Return what goes wrong when the installed commands check the folder, fix it, and fix it again."""
    wrongs = _run("check", folder, jobs)
    expected = {Path(v.path): v.after for v in verdicts if v.after is not None}
    before = {path: path.read_bytes() for path in folder.rglob("*.py") if path.is_file()}
    wrongs += _run("fix", folder, jobs, "--apply", "--unsafe-fixes")
    fixed = {path: path.read_bytes() for path in before}
    changed = {path for path in before if fixed[path] != before[path]}
    for path in sorted(changed ^ expected.keys()):
        wrongs.append(f"{path.relative_to(folder)}: {'only' if path in changed else 'not'} the command fixes it")
    for path in sorted(changed & expected.keys()):
        if fixed[path].decode("utf-8", "replace").lstrip("\ufeff") != expected[path]:
            wrongs.append(f"{path.relative_to(folder)}: the command makes something else of it")
    wrongs += _run("fix", folder, jobs, "--apply", "--unsafe-fixes")
    wrongs += [f"{p.relative_to(folder)}: fixed a second time" for p in sorted(fixed) if p.read_bytes() != fixed[p]]
    return wrongs


def _run(command: str, folder: Path, jobs: int | None, *options: str) -> list[str]:
    """Return what is wrong with how a command ended: it may only find things."""
    words = [sys.executable, "-m", "torchlint", command, *_EVERYTHING, *options, str(folder)]
    if jobs:
        words += ["--jobs", str(jobs)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, encoding="utf-8", errors="replace")
    wrongs = [f"`{command}` ends with {done.returncode}"] if done.returncode not in (0, 1) else []
    signs = ("Traceback (most recent call last)", "internal error")
    said = [line for line in done.stderr.splitlines() if any(sign in line for sign in signs)]
    return wrongs + [f"`{command}` says: {line}" for line in said]


# The report


def report(trees: Sequence[Tree]) -> str:
    """Return the figures as text."""
    verdicts = [verdict for tree in trees for verdict in tree.verdicts]
    lines = [f"{'tree':<36}{'files':>7}{'findings':>10}{'fixes':>7}{'applied':>9}{'refused':>9}{'seconds':>9}"]
    for tree in trees:
        sums = _sums(tree.verdicts)
        lines.append(f"{tree.name:<36}" + "".join(f"{n:>{w}}" for n, w in zip(sums, (7, 10, 7, 9, 9), strict=True)))
        lines[-1] += f"{tree.seconds:>9.1f}"
    totals = _sums(verdicts)
    lines.append(f"{'all':<36}" + "".join(f"{n:>{w}}" for n, w in zip(totals, (7, 10, 7, 9, 9), strict=True)))
    lines += ["", f"{'rule':<10}{'findings':>10}{'safe':>8}{'unsafe':>8}{'display':>9}{'applied':>9}{'refused':>9}"]
    findings = _total(v.findings for v in verdicts)
    fixes, applied = _total(v.fixes for v in verdicts), _total(v.applied for v in verdicts)
    refused = _total(v.refused for v in verdicts)
    for code in sorted(findings):
        offered = [fixes[code, safety] for safety in ("safe", "unsafe", "display")]
        done = [sum(n for (c, _), n in counter.items() if c == code) for counter in (applied, refused)]
        lines.append(f"{code:<10}{findings[code]:>10}{offered[0]:>8}{offered[1]:>8}{offered[2]:>9}")
        lines[-1] += f"{done[0]:>9}{done[1]:>9}"
    lines += [f"{count:>6} fixes of {code} refused: {reason}" for (code, reason), count in refused.most_common()]
    lines.append("")
    alone, left = sum(v.alone for v in verdicts), sum(v.not_alone for v in verdicts)
    lines.append(f"{alone} fixes of files with several were also tried alone; {left} were not, for want of time")
    unreadable = [verdict for verdict in verdicts if verdict.unreadable]
    lines.append(f"{len(unreadable)} files could not be read" + "".join(f"\n  {v.unreadable}" for v in unreadable))
    return "\n".join(lines)


def _sums(verdicts: Sequence[Verdict]) -> tuple[int, ...]:
    counters = [[getattr(v, name).total() for v in verdicts] for name in ("findings", "fixes", "applied", "refused")]
    return (len(verdicts), *map(sum, counters))


def _total(counters: Iterable[Counter]) -> Counter:
    total: Counter = Counter()
    for counter in counters:
        total.update(counter)
    return total


# The program


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus.run",
        description="Check and fix pinned packages with every rule, and judge what became of each file. "
        "Ends with 1 if anything is wrong, with 2 if something could not be run.",
    )
    cache = os.environ.get("TORCHLINT_CORPUS") or platformdirs.user_cache_dir("torchlint-corpus")
    parser.add_argument("packages", nargs="*", help="names of pinned packages; default: all")
    parser.add_argument("--cache", type=Path, default=Path(cache), help="where downloads are kept (TORCHLINT_CORPUS)")
    parser.add_argument("--folder", type=Path, action="append", default=[], help="judge a copy of this folder instead")
    parser.add_argument("--sdist", action="store_true", help="take sdists, whose build programs pip runs; else wheels")
    parser.add_argument("--seconds", type=float, default=300, help="for fixes alone, for each package (default 300)")
    parser.add_argument("--jobs", "-j", type=int, help="processes; default: all cores")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = _arguments(words)
    pins = [pin for pin in PINS if not options.packages or pin.partition("==")[0] in options.packages]
    unknown = set(options.packages) - {pin.partition("==")[0] for pin in PINS}
    if unknown:
        print(f"not pinned: {', '.join(sorted(unknown))}; pinned: {', '.join(PINS)}", file=sys.stderr)
        return INCOMPLETE
    trees, left_out = [], []
    sources = [(str(folder), folder) for folder in options.folder] or [(pin, None) for pin in pins]
    for name, given in sources:
        with tempfile.TemporaryDirectory(prefix="torchlint-corpus-") as scratch:
            folder = Path(scratch) / "tree"
            try:
                _fill(folder, given or downloaded(name, options.cache, sdist=options.sdist))
            except (NotAvailable, OSError) as error:
                left_out.append(str(error))
                print(f"left out: {error}", file=sys.stderr, flush=True)
                continue
            trees.append(judged_tree(name, folder, jobs=options.jobs, seconds=options.seconds))
        for violation in trees[-1].all_violations():
            print(violation, flush=True)
    print(report(trees))
    return _verdict(trees, left_out)


def _fill(folder: Path, given: Path) -> None:
    """Put the Python files of a folder or an archive into a new folder."""
    if not given.is_dir():
        unpacked(given, folder)
        return
    for path in sorted(given.rglob("*.py")):
        copy = folder / path.relative_to(given)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


def _verdict(trees: Sequence[Tree], left_out: Sequence[str]) -> int:
    violations = sum(len(tree.all_violations()) for tree in trees)
    print(f"{violations} violations in {sum(len(tree.verdicts) for tree in trees)} files of {len(trees)} trees")
    if left_out:
        print(f"NOT RUN, {len(left_out)} of the packages: " + "; ".join(left_out))
    if violations:
        return VIOLATIONS
    return INCOMPLETE if left_out or not trees else OK


if __name__ == "__main__":
    sys.exit(main())
