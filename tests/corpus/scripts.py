"""``python -m tests.corpus.scripts``: published training scripts, before and after their fixes; see ``--help``.

Safe fixes must leave every loss and every weight as it was, bit for bit; with the unsafe ones it must still run.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.corpus.labelled import from_clone
from torchlint import fix_source

OK, BROKEN, NOT_RUN = 0, 1, 2
ENOUGH = 5
"""Scripts with safe fixes that have to be run."""

_DRIVER = Path(__file__).with_name("drive.py")
_LONGEST = 900


@dataclass(frozen=True, slots=True)
class Script:
    """Where a published script is to be had, and how it is run."""

    repository: str
    commit: str
    path: str
    items: int
    """Size of the synthetic data sets."""

    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit[:10]}:{self.path}"


SCRIPTS = (
    Script(
        "pytorch/examples",
        "892eca0a9469f657bf4c635d1b9b648d267580fc",
        "swin_transformer/swin_transformer.py",
        100,
        ("--epochs", "1"),
    ),
    Script(
        "pytorch/examples",
        "5921fc191b83df2451c342b8bb30b5e3d8891ff8",
        "vision_transformer/main.py",
        100,
        ("--epochs", "1"),
    ),
    Script(
        "pytorch/examples",
        "64c5eaf8e11cfb02bd78908cc08e14bcbeb61bb6",
        "continuous-bag-of-words/cbow.py",
        300,
    ),
    Script(
        "vwxyzjn/cleanrl",
        "a689592af7ab589557039426a00ccb10080ff530",
        "cleanrl/ppo.py",
        0,
        ("--total-timesteps", "1200", "--no-cuda"),
    ),
    Script(
        "vwxyzjn/cleanrl",
        "c734020c433d9890ba29195c4f1ec86416f49f8e",
        "cleanrl/ppo.py",
        0,
        ("--total-timesteps", "1200", "--no-cuda"),
    ),
    Script(
        "vwxyzjn/cleanrl",
        "202509d85fe42cb47c9c67eef3bc2dbd0fef77e5",
        "cleanrl/pqn.py",
        0,
        ("--total-timesteps", "2000", "--no-cuda"),
    ),
    Script(
        "pytorch/examples",
        "77f55b912142e11fcfdf5b530231fb9c52f181e8",
        "mnist/main.py",
        200,
        ("--epochs", "1"),
    ),
    Script(
        "pytorch/examples",
        "77f55b912142e11fcfdf5b530231fb9c52f181e8",
        "vae/main.py",
        300,
        ("--epochs", "2"),
    ),
    Script(
        "pytorch/examples",
        "77f55b912142e11fcfdf5b530231fb9c52f181e8",
        "mnist_rnn/main.py",
        200,
        ("--epochs", "1"),
    ),
)


class NotRun(Exception):
    """A script could not be tried."""


@dataclass(frozen=True, slots=True)
class Record:
    """All that a run computed."""

    output: str
    losses: tuple[str, ...]
    weights: str
    lines: frozenset[int]
    error: str = ""

    def differs_from(self, other: Record) -> str:
        """Return what is different, empty if nothing is."""
        if self.error or other.error:
            return f"it fails: {self.error or other.error}"
        names = ("losses", "weights", "output")
        return ", ".join(name for name in names if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one script."""

    script: Script
    executed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each rule with safe fixes: changed statements that ran, and all changed statements."""

    unsafe: tuple[str, ...] = ()
    """Rules with unsafe fixes."""

    steps: int = 0
    wrong: str = ""
    not_run: str = ""

    @property
    def rules_at_work(self) -> list[str]:
        """The rules whose safe fixes changed something that ran."""
        return [code for code, (ran, _) in self.executed.items() if ran]


def tried(script: Script, text: str, folder: Path) -> Trial:
    """Return what becomes of a script, run in a folder: twice as it is, then with safe fixes, then with all."""
    safe = fix_source(text, select=["ALL"])
    everything = fix_source(text, select=["ALL"], unsafe_fixes=True)
    before = run(script, text, folder)
    executed = _executed(text, sorted({d.code for d in safe.applied}), before.lines)
    unsafe = tuple(sorted({d.code for d in everything.applied} - set(executed)))
    wrong = _wrong(script, folder, before, (text, safe.text, everything.text))
    return Trial(script, executed, unsafe, len(before.losses), wrong)


def _wrong(script: Script, folder: Path, before: Record, texts: tuple[str, str, str]) -> str:
    """Return what goes wrong, empty if nothing does."""
    original, safe, everything = texts
    if before.error:
        raise NotRun(f"{script} does not run as it is: {before.error}")
    if before.differs_from(run(script, original, folder)):
        raise NotRun(f"{script} is not deterministic, so nothing can be compared")
    difference = before.differs_from(run(script, safe, folder))
    if difference:
        return f"safe fixes change it: {difference}"
    if everything == safe:
        return ""
    error = run(script, everything, folder).error
    return f"unsafe fixes break it: {error}" if error else ""


def run(script: Script, text: str, folder: Path) -> Record:
    """Return what a run of the text computes."""
    place, record = folder / "script.py", folder / "record.json"
    place.write_text(text, encoding="utf-8", newline="")
    record.unlink(missing_ok=True)
    command = [sys.executable, str(_DRIVER), str(place), str(record), str(script.items), *script.words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Record("", (), "", frozenset(), f"longer than {_LONGEST} s")
    if done.returncode or not record.exists():
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return Record(done.stdout, (), "", frozenset(), lines[-1])
    seen = json.loads(record.read_text(encoding="utf-8"))
    return Record(done.stdout, tuple(seen["losses"]), seen["weights"], frozenset(seen["lines"]))


def _executed(text: str, codes: Sequence[str], lines: frozenset[int]) -> dict[str, tuple[int, int]]:
    """Return for each rule how many of the statements that its safe fixes change have run, and how many there are."""
    found = {}
    for code in codes:
        changed = changed_statements(text, fix_source(text, select=[code]).text)
        ran = [place for place in changed if any(row in lines for row in place)]
        found[code] = (len(ran), len(changed))
    return found


def changed_statements(old: str, new: str) -> set[range]:
    """Return the rows of the innermost statements of the old text that the new one changes."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    rows = {row + 1 for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal" for row in range(i, j)}
    statements = [node for node in ast.walk(ast.parse(old)) if isinstance(node, ast.stmt)]
    found = set()
    for row in rows:
        around = [node for node in statements if node.lineno <= row <= (node.end_lineno or node.lineno)]
        if around:
            innermost = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
            found.add(range(innermost.lineno, (innermost.end_lineno or innermost.lineno) + 1))
    return found


# The program


def text_of(script: Script, checkouts: Path) -> str:
    """Return the text of a script from a folder of clones, named ``owner/name``, ``owner+name`` or ``name``.

    Raises:
        NotRun: no clone has it.
    """
    data = from_clone(script.repository, checkouts, "show", f"{script.commit}:{script.path}")
    if data is None:
        raise NotRun(f"{script}: no clone has it (git clone https://github.com/{script.repository})")
    return data.decode("utf-8")


def _line(trial: Trial) -> str:
    if trial.not_run:
        return f"NOT RUN       {trial.not_run}"
    safe = ", ".join(f"{code} {ran}/{all_}" for code, (ran, all_) in trial.executed.items()) or "none"
    state = "WRONG " if trial.wrong else ("ok  " if trial.rules_at_work else "ok, unsafe")
    told = f"{state:<14}{trial.script}\n              safe (changed statements that ran/all): {safe};"
    return f"{told} unsafe: {', '.join(trial.unsafe) or 'none'}; {trial.steps} losses {trial.wrong}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus.scripts",
        description="Run published training scripts on synthetic data before and after their fixes. Ends with 1 if a "
        f"fix breaks one, with 2 if fewer than {ENOUGH} scripts with safe fixes could be run.",
    )
    parser.add_argument("--checkouts", type=Path, default=os.environ.get("TORCHLINT_CHECKOUTS"))
    parser.add_argument("names", nargs="*", help="parts of names of scripts; default: all")
    options = parser.parse_args(words)
    if find_spec("torch") is None:
        print("NOT RUN: torch is not installed", file=sys.stderr)
        return NOT_RUN
    if options.checkouts is None:
        print("NOT RUN: --checkouts FOLDER (or TORCHLINT_CHECKOUTS) says where the clones lie:", file=sys.stderr)
        for repository in sorted({script.repository for script in SCRIPTS}):
            print(f"  git clone https://github.com/{repository}", file=sys.stderr)
        return NOT_RUN
    trials = []
    for script in SCRIPTS:
        if not options.names or any(name in str(script) for name in options.names):
            trials.append(_trial(script, options.checkouts))
            print(_line(trials[-1]), flush=True)
    return _verdict(trials)


def _trial(script: Script, checkouts: Path) -> Trial:
    try:
        text = text_of(script, checkouts)
        with tempfile.TemporaryDirectory(prefix="torchlint-script-") as folder:
            return tried(script, text, Path(folder))
    except NotRun as reason:
        return Trial(script, not_run=str(reason))


def _verdict(trials: Sequence[Trial]) -> int:
    full = [t for t in trials if not t.not_run and not t.wrong and t.rules_at_work]
    wrong, left_out = [t for t in trials if t.wrong], [t for t in trials if t.not_run]
    print(f"{len(full)} scripts with safe fixes at work compute the same, bit for bit")
    print(f"{len(wrong)} broken, {len(left_out)} not run, of {len(trials)}")
    if wrong:
        return BROKEN
    return OK if len(full) >= ENOUGH else NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
