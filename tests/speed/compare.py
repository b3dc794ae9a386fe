"""``python -m tests.speed.compare``: how long torchlint, TorchFix and Ruff take for one pinned tree; see ``--help``."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tests.corpus.packages import PINS, NotAvailable, downloaded, unpacked
from torchlint.engine.many import available_cores

OK, NOT_RUN = 0, 2
OTHERS = ("torchfix==0.7.0", "ruff==0.17.5")
"""Installed into an environment of their own."""

_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that checks a folder with all that it has, cold."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run cost, with its child processes."""

    wall: float
    cpu: float
    lines: int
    """Lines of output: findings, and little else."""


def tools(bin_folder: Path) -> list[Tool]:
    """Return the tools, the baseline first."""
    ours = {"PYTHONPATH": str(_ROOT)}
    torchlint = (sys.executable, "-m", "torchlint", "check", "--isolated", "--no-cache", "--quiet")
    concise = ("--output-format", "concise")
    return [
        Tool("torchfix --select=ALL", (str(bin_folder / "torchfix"), "--select=ALL"), {}),
        Tool("torchlint check", (*torchlint, *concise), ours),
        Tool("torchlint check --select ALL", (*torchlint, *concise, "--select", "ALL"), ours),
        Tool(
            "ruff check --select ALL",
            (str(bin_folder / "ruff"), "check", "--isolated", "--no-cache", "--quiet", *concise, "--select", "ALL"),
            {},
        ),
    ]


def timed(tool: Tool, path: Path) -> Cost:
    """Return the cost of one run.

    Raises:
        RuntimeError: the tool did not do its work.
    """
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [*tool.command, str(path)],
        cwd=path.parent,
        env={**os.environ, **tool.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{tool.name} ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall, cpu, len(done.stdout.splitlines()))


def alternated(chosen: Sequence[Tool], path: Path, rounds: int) -> dict[str, list[Cost]]:
    """Return the costs of each tool, which take turns so that a busy machine is unfair to none."""
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in chosen}
    for _ in range(rounds):
        for tool in chosen:
            costs[tool.name].append(timed(tool, path))
    return costs


def table(costs: Mapping[str, Sequence[Cost]]) -> str:
    """Return the medians, and by how much each tool is faster than the first one in the same round."""
    baseline, *_ = costs.values()
    lines = [f"{'':<32}{'wall s':>9}{'CPU s':>9}{'lines':>7}{'wall x':>22}{'CPU x':>22}"]
    for name, own in costs.items():
        wall, cpu = (statistics.median(getattr(cost, what) for cost in own) for what in ("wall", "cpu"))
        lines.append(f"{name:<32}{wall:>9.2f}{cpu:>9.2f}{own[-1].lines:>7}")
        for what in ("wall", "cpu"):
            pairs = zip(baseline, own, strict=True)
            lines[-1] += f"{_spread([getattr(one, what) / max(getattr(two, what), 1e-3) for one, two in pairs]):>22}"
    return "\n".join(lines)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


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


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    cache = Path(os.environ.get("TORCHLINT_CORPUS") or platformdirs.user_cache_dir("torchlint-corpus"))
    parser = argparse.ArgumentParser(
        prog="python -m tests.speed.compare",
        description="Time torchlint, TorchFix and Ruff in turns on a pinned package, cold. Ends with 2 if that fails.",
    )
    parser.add_argument("package", nargs="?", default="timm", help="name of a pinned package (default timm)")
    parser.add_argument("--cache", type=Path, default=cache, help="where downloads are kept (TORCHLINT_CORPUS)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each tool (default 3)")
    parser.add_argument("--small-rounds", type=int, default=10, help="runs on a single small file (default 10)")
    options = parser.parse_args(words)
    pin = next((pin for pin in PINS if pin.partition("==")[0] == options.package), None)
    if pin is None:
        print(f"not pinned: {options.package}; pinned: {', '.join(PINS)}", file=sys.stderr)
        return NOT_RUN
    try:
        chosen = tools(environment(options.cache / "tools"))
        with tempfile.TemporaryDirectory(prefix="torchlint-speed-") as scratch:
            _compare(pin, downloaded(pin, options.cache), Path(scratch), chosen, options)
    except (NotAvailable, RuntimeError, OSError) as error:
        print(f"NOT RUN: {error}", file=sys.stderr)
        return NOT_RUN
    return OK


def _compare(pin: str, archive: Path, scratch: Path, chosen: Sequence[Tool], options: argparse.Namespace) -> None:
    tree = scratch / "tree"
    files = unpacked(archive, tree)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"Python {platform.python_version()}, {available_cores()} cores{load}; {', '.join(OTHERS)}")
    print(f"\n{pin}: {len(files)} files, {megabytes:.1f} MB, {options.rounds} rounds, median (least-most)")
    print(table(alternated(chosen, tree, options.rounds)), flush=True)
    small = scratch / "small" / "train.py"
    small.parent.mkdir()
    small.write_bytes((_ROOT / "fixtures" / "demo" / "train.py").read_bytes())
    print(f"\none file of {len(small.read_text(encoding='utf-8').splitlines())} lines, {options.small_rounds} rounds")
    print(table(alternated(chosen, small, options.small_rounds)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
