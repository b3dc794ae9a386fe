"""How a test suite of a public project is taken, fixed and run: for ``tests.corpus.suites``."""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.corpus.labelled import from_clone

COMMON = ("coverage", "pytest", "pytest-timeout", "torch", "numpy")
"""What every suite needs, in whatever version is there."""

PASSED = "passed"

_ROOT = Path(__file__).parents[2]
_PLUGIN = Path(__file__).with_name("steady.py")
_LONGEST = 3600
_FIX = ("fix", "--apply", "--isolated", "--no-cache", "--exit-zero", "--color", "never")
_TESTS = ("-p", "no:cacheprovider", "-p", "steady", "-p", "pytest_timeout", "--timeout=30", "--tb=short")
_REPORT = ("-q", "-W", "ignore", "--continue-on-collection-errors", "-o", "junit_family=xunit1")


class NotRun(Exception):
    """A suite could not be tried."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Which tests of which commit are run, and what they need."""

    name: str
    repository: str
    commit: str
    package: str
    files: tuple[str, ...]
    """What is taken from the commit."""

    tests: tuple[str, ...]
    words: tuple[str, ...]
    """More arguments for pytest."""

    requirements: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({self.repository}@{self.commit[:10]})"


@dataclass(frozen=True, slots=True)
class Place:
    """A statement that a fix changes."""

    path: str
    rows: range


@dataclass(frozen=True, slots=True)
class Fixed:
    """A tree with fixes."""

    applied: Counter[str]
    """How many fixes of each rule."""

    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a suite said."""

    outcomes: Mapping[str, str]
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Which lines ran, of the files that the fixes change."""


def outcomes(report: str) -> dict[str, str]:
    """Return what became of each test, by its name, from the report of pytest.

    Args:
        report: XML as JUnit has it.
    """
    found: dict[str, str] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        wrong = {child.tag for child in case} & {"failure", "error", "skipped"}
        state = "skipped" if wrong == {"skipped"} else "failed" if wrong else PASSED
        if found.get(name) != "failed":  # a test can have a second entry, for an error while it is torn down
            found[name] = state
    return found


def passed_twice(first: Mapping[str, str], second: Mapping[str, str]) -> set[str]:
    """Return the tests that passed in both runs."""
    return {name for name, state in first.items() if state == second.get(name) == PASSED}


def changed(before: set[str], after: Mapping[str, str]) -> dict[str, str]:
    """Return what became of the tests that passed before and do not after, in the order of their names."""
    return {name: after.get(name, "gone") for name in sorted(before) if after.get(name) != PASSED}


def executed(places: frozenset[Place], lines: Mapping[str, frozenset[int]]) -> int:
    """Return how many of the statements have run."""
    return sum(any(row in lines.get(place.path, ()) for row in place.rows) for place in places)


def counts(text: str) -> Counter[str]:
    """Return how many fixes of each rule ``torchlint fix`` says that it applied."""
    found: Counter[str] = Counter()
    told = re.search(r"^(?:Applied|Fixed) .*:\n((?: +\d+  TL\d+ .*\n?)*)", text, re.MULTILINE)
    for line in told[1].splitlines() if told else ():
        number, code = line.split()[:2]
        found[code] += int(number)
    return found


# Trees


def places(path: str, old: str, new: str) -> set[Place]:
    """Return the innermost statements of the old text that the new one changes, or before which it inserts lines."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    ranges = [range(i, max(j, i + 1)) for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal"]
    statements = [node for node in ast.walk(ast.parse(old)) if isinstance(node, ast.stmt)]
    found = set()
    for row in (row + 1 for span in ranges for row in span):
        around = [node for node in statements if _first(node) <= row <= _last(node)]
        if around:
            found.add(Place(path, _own_rows(max(around, key=lambda node: (_first(node), -_last(node))))))
    return found


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _own_rows(node: ast.stmt) -> range:
    """The rows whose execution means that the statement ran: the body of a function, the head of another block."""
    body = getattr(node, "body", None)
    if body is None:
        return range(node.lineno, _last(node) + 1)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return range(body[0].lineno, _last(node) + 1)
    return range(_first(node), max(body[0].lineno, _first(node) + 1))


def taken(suite: Suite, checkouts: Path, folder: Path) -> None:
    """Write the files of a suite into a folder.

    Raises:
        NotRun: no clone has the commit.
    """
    archive = from_clone(suite.repository, checkouts, "archive", suite.commit, *suite.files)
    if archive is None:
        raise NotRun("no clone has it")
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)


def fixed(original: Path, folder: Path, select: str, runs: Sequence[Sequence[str]]) -> Fixed:
    """Fix a copy of a tree, by one run of the command line for each sequence of words."""
    shutil.copytree(original, folder, symlinks=True)
    applied: Counter[str] = Counter()
    for words in runs:
        command = [sys.executable, "-m", "torchlint", *_FIX, "--select", select, *words]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRun(f"torchlint fix ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        applied += counts(done.stdout + done.stderr)
    return Fixed(applied, frozenset(_differences(original, folder)))


def _differences(original: Path, folder: Path) -> Iterator[Place]:
    for path in sorted(path for path in original.rglob("*.py") if path.is_file()):
        name = path.relative_to(original).as_posix()
        old, new = path.read_bytes(), (folder / name).read_bytes()
        if old != new:
            yield from places(name, old.decode("utf-8"), new.decode("utf-8"))


# Runs


def run(suite: Suite, tree: Path, python: str, traced: Sequence[str]) -> Run:
    """Return what a run of the tests says; nothing where it does not come to its end.

    Args:
        suite: which tests.
        tree: the code and its tests.
        python: the interpreter that has what the tests need.
        traced: files of the tree of which to note which lines run.
    """
    with tempfile.TemporaryDirectory(prefix="torchlint-suite-") as name:
        folder = Path(name)
        shutil.copy(_PLUGIN, folder / "steady.py")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "traced.json").write_text(json.dumps([str(tree / path) for path in traced]), encoding="utf-8")
        where = ("-c", str(folder / "pytest.ini"), f"--rootdir={tree}", f"--confcutdir={tree}")
        told = (f"--junitxml={folder / 'report.xml'}", f"--basetemp={folder / 'temporary'}")
        command = [python, "-m", "pytest", *where, *_TESTS, *_REPORT, *told, *suite.words, *suite.tests]
        with (
            open(tree.with_suffix(".log"), "w", encoding="utf-8") as log,
            suppress(subprocess.TimeoutExpired),
        ):
            environment = _environment(tree, folder)
            subprocess.run(command, cwd=tree, env=environment, stdout=log, stderr=log, timeout=_LONGEST, check=False)
        if not (folder / "report.xml").exists():
            return Run({})
        ran = json.loads((folder / "lines.json").read_text(encoding="utf-8"))
        lines = {Path(path).relative_to(tree).as_posix(): frozenset(rows) for path, rows in ran.items()}
        return Run(outcomes((folder / "report.xml").read_text(encoding="utf-8")), lines)


def _environment(tree: Path, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (tree / "src", tree, folder))),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "Agg",
        "STEADY_FOLDER": str(folder),
    }


def missing(requirements: Sequence[str], python: str) -> list[str]:
    """Return the requirements that an interpreter does not meet."""
    code = "import importlib.metadata as m, json; print(json.dumps([(d.name, d.version) for d in m.distributions()]))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    here = {name.lower().replace("_", "-"): version for name, version in json.loads(done.stdout)}
    wanted = [(one, *one.lower().replace("_", "-").partition("==")[::2]) for one in (*COMMON, *requirements)]
    return [one for one, name, version in wanted if name not in here or (version and here[name] != version)]
