"""``python -m tests.speed.compare``: what torchlint and other linters cost on pinned trees; see ``--help``."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import platformdirs

from tests.corpus.packages import PINS, NotAvailable, downloaded, unpacked
from tests.speed import growth
from tests.speed.tools import BASELINE, OTHERS, ROOT, Cost, Tool, alternated, environment, median, tools
from torchlint.engine.many import available_cores

OK, NOT_RUN = 0, 2
PACKAGES = (*PINS, "transformers==5.23.0")
GROWTH = ("size", "files", "processes", "rules")


def table(costs: Mapping[str, Sequence[Cost]], files: int, megabytes: float) -> str:
    """Return the medians, and by how much each tool is faster than the first one in the same round."""
    baseline, *_ = costs.values()
    head = f"{'':<36}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'files/s':>9}{'MB/s':>8}{'lines':>8}"
    lines = [f"{head}{'wall x':>22}{'CPU x':>22}"]
    for name, own in costs.items():
        wall, cpu, peak = (median(own, what) for what in ("wall", "cpu", "peak"))
        line = f"{name:<36}{wall:>9.2f}{cpu:>9.2f}{peak:>9.0f}{files / wall:>9.0f}{megabytes / wall:>8.2f}"
        lines.append(f"{line}{own[-1].lines:>8}")
        for what in ("wall", "cpu"):
            pairs = zip(baseline, own, strict=True)
            lines[-1] += f"{_spread([getattr(one, what) / max(getattr(two, what), 1e-3) for one, two in pairs]):>22}"
    return "\n".join(lines)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(words)
    wanted = options.packages or ["timm"]
    pins = {pin.partition("==")[0]: pin for pin in PACKAGES}
    unknown = [name for name in wanted if name not in pins]
    if unknown:
        print(f"not pinned: {', '.join(unknown)}; pinned: {', '.join(PACKAGES)}", file=sys.stderr)
        return NOT_RUN
    try:
        with tempfile.TemporaryDirectory(prefix="torchlint-speed-") as scratch:
            chosen = _chosen(tools(environment(options.cache / "tools"), Path(scratch) / "caches"), options.tools)
            load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
            print(
                f"Python {platform.python_version()}, {available_cores()} cores{load}; {', '.join(OTHERS)}", flush=True
            )
            if options.growth:
                _grow(options.growth, chosen, Path(scratch), options)
                return OK
            for name in wanted:
                _compare(pins[name], downloaded(pins[name], options.cache), Path(scratch), chosen, options)
            _compare_small(Path(scratch), chosen, options)
    except (NotAvailable, RuntimeError, OSError) as error:
        print(f"NOT RUN: {error}", file=sys.stderr)
        return NOT_RUN
    return OK


def _parser() -> argparse.ArgumentParser:
    cache = Path(os.environ.get("TORCHLINT_CORPUS") or platformdirs.user_cache_dir("torchlint-corpus"))
    parser = argparse.ArgumentParser(
        prog="python -m tests.speed.compare",
        description="Let torchlint and other linters check pinned packages in turns, cold and warm; or show how the "
        "cost of torchlint grows. Ends with 2 if that cannot be done.",
    )
    parser.add_argument("packages", nargs="*", help="names of pinned packages (default timm)")
    parser.add_argument("--cache", type=Path, default=cache, help="where downloads are kept (TORCHLINT_CORPUS)")
    parser.add_argument("--tools", default="", help="only tools whose name begins with one of these words (commas)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each tool (default 3)")
    parser.add_argument("--small-rounds", type=int, default=10, help="runs on a single small file (default 10)")
    parser.add_argument(
        "--growth", nargs="*", choices=GROWTH, help=f"show how the cost of torchlint grows, with {', '.join(GROWTH)}"
    )
    return parser


def _chosen(known: Sequence[Tool], words: str) -> list[Tool]:
    """Return the tools whose name begins with one of the words, all without any.

    Raises:
        NotAvailable: there is none.
    """
    beginnings = tuple(word.strip() for word in words.split(",") if word.strip())
    chosen = [tool for tool in known if not beginnings or tool.name.startswith(beginnings)]
    if not chosen:
        raise NotAvailable(f"no tool begins with {words}; there are {', '.join(tool.name for tool in known)}")
    return chosen


def _compare(pin: str, archive: Path, scratch: Path, chosen: Sequence[Tool], options: argparse.Namespace) -> None:
    tree = scratch / pin.partition("==")[0] / "tree"
    files = unpacked(archive, tree)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    print(f"\n{pin}: {len(files)} files, {megabytes:.1f} MB, {options.rounds} rounds, median (least-most)")
    print(table(alternated(chosen, tree, options.rounds), len(files), megabytes), flush=True)


def _compare_small(scratch: Path, chosen: Sequence[Tool], options: argparse.Namespace) -> None:
    small = scratch / "small" / "train.py"
    small.parent.mkdir()
    small.write_bytes((ROOT / "fixtures" / "demo" / "train.py").read_bytes())
    data = small.read_bytes()
    print(f"\none file of {len(data.splitlines())} lines, {options.small_rounds} rounds")
    print(table(alternated(chosen, small, options.small_rounds), 1, len(data) / 1e6))
    version = Tool("torchlint --version", (sys.executable, "-m", "torchlint", "--version"), {"PYTHONPATH": str(ROOT)})
    bare = Tool("python -c pass", (sys.executable, "-c", "pass"), {})
    start = alternated([bare, version], Path("--version"), options.small_rounds)
    print("start: " + ", ".join(f"{name} {median(own, 'wall'):.3f} s" for name, own in start.items()), flush=True)


def _grow(wanted: Sequence[str], chosen: Sequence[Tool], scratch: Path, options: argparse.Namespace) -> None:
    """Print a table for each kind of growth and each of torchlint's tools, cold and warm."""
    by_name = {tool.name: tool for tool in chosen}
    cold, warm = by_name.get("torchlint check"), by_name.get("torchlint check, warm")
    if cold is None or warm is None:
        raise NotAvailable(f"growth is that of torchlint: do not leave it out with --tools (as {BASELINE} may be)")
    for kind in wanted:
        for name, rows in _rows(kind, cold, warm, scratch, options):
            print(f"\nwith the number of {name}" if kind != "size" else f"\n{name}")
            for line in growth.growth(rows):
                print(line, flush=True)


def _rows(
    kind: str, cold: Tool, warm: Tool, scratch: Path, options: argparse.Namespace
) -> Iterator[tuple[str, Iterator[growth.Row]]]:
    if kind == "size":
        yield (
            "with the size of one file, a finding in every six lines, cold",
            growth.with_sizes(cold, scratch / "size", options.rounds),
        )
    elif kind == "files":
        for tool in (cold, warm):
            state = "warm" if tool.warm else "cold"
            yield f"files of 20 lines, {state}", growth.with_counts(tool, scratch / state, options.rounds)
    else:
        tree = scratch / kind / "tree"
        unpacked(downloaded(PINS[0], options.cache), tree)
        settings = _jobs() if kind == "processes" else _selections()
        yield f"{kind}, {PINS[0]}, cold", growth.with_options(cold, tree, options.rounds, settings)


def _jobs() -> Iterator[tuple[int, str, Sequence[str]]]:
    for jobs in sorted({1, 2, available_cores()}):
        yield jobs, f"{jobs} processes", ("--jobs", str(jobs))


def _selections() -> Iterator[tuple[int, str, Sequence[str]]]:
    from torchlint.registry import rules

    codes = [rule.code for rule in rules()]
    for count in sorted({1, 5, 10, len(codes)}):
        yield count, f"{count} rules", ("--select", ",".join(codes[:count]))


if __name__ == "__main__":
    sys.exit(main())
