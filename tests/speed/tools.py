"""The tools that are compared, at pinned versions, and what one run of a command costs."""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.packages import NotAvailable

OTHERS = ("torchfix==0.7.0", "ruff==0.17.5", "fixit==2.2.1", "flake8==7.5.0")
"""Installed into an environment of their own; with TorchFix beside it, flake8 has its rules."""

BASELINE = "torchfix --select=ALL"
ROOT = Path(__file__).parent.parent.parent
_CONCISE = ("--output-format", "concise")
_OURS = (sys.executable, "-m", "torchlint", "check", "--isolated", "--quiet", *_CONCISE)


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that checks what it is given; ``warm`` is one that may use what a former run has kept."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    warm: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run cost, with its child processes."""

    wall: float
    cpu: float
    lines: int
    """Lines of output: findings, and little else."""

    peak: float = 0.0
    """Megabytes of the process that took most; at least those of the process that measures."""


def tools(programs: Path, caches: Path) -> list[Tool]:
    """Return the tools, the baseline first; ``caches`` is a folder that they may fill."""
    ours = {"PYTHONPATH": str(_installed(caches / "code")), "TORCHLINT_CACHE_DIR": str(caches / "torchlint")}
    kept = {"RUFF_CACHE_DIR": str(caches / "ruff")}
    ruff = (str(programs / "ruff"), "check", "--isolated", "--quiet", *_CONCISE, "--select", "ALL")
    return [
        Tool(BASELINE, (str(programs / "torchfix"), "--select=ALL"), {}),
        Tool("flake8 --select TOR", (str(programs / "flake8"), "--isolated", "--select", "TOR"), {}),
        Tool("fixit lint", (str(programs / "fixit"), "--quiet", "lint"), {}),
        Tool("torchlint check", (*_OURS, "--no-cache"), ours),
        Tool("torchlint check, warm", _OURS, ours, warm=True),
        Tool("torchlint check --select ALL", (*_OURS, "--no-cache", "--select", "ALL"), ours),
        Tool("torchlint check --select ALL, warm", (*_OURS, "--select", "ALL"), ours, warm=True),
        Tool("ruff check --select ALL", (*ruff, "--no-cache"), {}),
        Tool("ruff check --select ALL, warm", ruff, kept, warm=True),
    ]


def _installed(folder: Path) -> Path:
    """Return a folder with torchlint as pip installs it: compiled, as the other tools are, and edited by nobody."""
    shutil.copytree(ROOT / "torchlint", folder / "torchlint", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder, quiet=1)
    return folder


def timed(tool: Tool, path: Path, *more: str) -> Cost:
    """Return the cost of one run on a path.

    Raises:
        RuntimeError: the tool did not do its work.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [*tool.command, *more, str(path)],
            cwd=path.parent,
            env={**os.environ, **tool.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        code = process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if code not in (0, 1):
            said = errors.read().decode(errors="replace").strip()[-300:]
            raise RuntimeError(f"{tool.name} ends with {code}: {said}")
        lines = len(output.read().splitlines())
    return Cost(wall, usage.ru_utime + usage.ru_stime, lines, megabytes(usage.ru_maxrss))


def megabytes(maximum: int) -> float:
    """Return a maximum of memory as the system tells it in megabytes."""
    return maximum / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def warmed_up(chosen: Sequence[Tool], path: Path) -> None:
    """Let the tools that keep something keep it; files that are younger than two seconds are not believed."""
    if any(tool.warm for tool in chosen):
        time.sleep(2.5)
        for tool in chosen:
            if tool.warm:
                timed(tool, path)


def alternated(chosen: Sequence[Tool], path: Path, rounds: int) -> dict[str, list[Cost]]:
    """Return the costs of each tool, which take turns so that a busy machine is unfair to none."""
    warmed_up(chosen, path)
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in chosen}
    for _ in range(rounds):
        for tool in chosen:
            costs[tool.name].append(timed(tool, path))
    return costs


def median(costs: Sequence[Cost], what: str) -> float:
    """Return the median of one column."""
    return statistics.median(getattr(cost, what) for cost in costs)


def environment(folder: Path) -> Path:
    """Return the folder of programs of an environment with the other tools, made unless it is there."""
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    stamp = folder / "-".join(("installed", *OTHERS))
    if not stamp.exists():
        venv.create(folder, with_pip=True)
        command = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *OTHERS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAvailable(f"{', '.join(OTHERS)} cannot be installed: {done.stderr.strip()[-300:]}")
        stamp.touch()
    return programs
