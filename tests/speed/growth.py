"""How the cost of torchlint grows: with the size of a file, the number of files, of processes and of rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.speed.tools import Cost, Tool, alternated, median

SIZES = (10, 100, 1_000, 10_000, 50_000)
"""Lines of one file."""

COUNTS = (100, 1_000, 5_000, 10_000, 20_000)
"""Files of 20 lines."""

_HEAD = "import torch\n\n\n"
_BLOCK = """\
def step{number}(n, d):
    a = torch.zeros(n).to("cuda")
    b = a + d
    return b


"""
"""Six lines, and a finding in them: what has none is not parsed with libcst, and would grow less."""

_LINES_OF_BLOCK = _BLOCK.count("\n")
_LINES_OF_SMALL = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One size and what it cost."""

    label: str
    amount: int
    costs: Sequence[Cost]


def program(lines: int) -> str:
    """Return a program of about this many lines, with a finding in every six."""
    blocks = max(1, (lines - _HEAD.count("\n")) // _LINES_OF_BLOCK)
    return _HEAD + "".join(_BLOCK.format(number=number) for number in range(blocks))


def tree(folder: Path, count: int) -> Path:
    """Return a folder in which this many small files lie, a hundred in each folder."""
    text = program(_LINES_OF_SMALL)
    for number in range(count):
        path = folder / f"package{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}# {number}\n", encoding="utf-8")
    return folder


def with_sizes(tool: Tool, folder: Path, rounds: int, sizes: Iterable[int] = SIZES) -> Iterator[Row]:
    """Yield the cost of one file of each size."""
    for lines in sizes:
        path = folder / f"lines{lines}" / "module.py"
        path.parent.mkdir(parents=True)
        path.write_text(program(lines), encoding="utf-8")
        yield Row(f"{lines:,} lines", lines, alternated([tool], path, rounds)[tool.name])


def with_counts(tool: Tool, folder: Path, rounds: int, counts: Iterable[int] = COUNTS) -> Iterator[Row]:
    """Yield the cost of a folder of each number of files."""
    for count in counts:
        path = tree(folder / f"files{count}" / "tree", count)
        yield Row(f"{count:,} files", count, alternated([tool], path, rounds)[tool.name])


def with_options(
    tool: Tool, path: Path, rounds: int, options: Iterable[tuple[int, str, Sequence[str]]]
) -> Iterator[Row]:
    """Yield the cost of a tree with each of the options, given as an amount, its label and the words."""
    for amount, label, words in options:
        changed = Tool(tool.name, (*tool.command, *words), tool.environment, tool.warm)
        yield Row(label, amount, alternated([changed], path, rounds)[tool.name])


def growth(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each size: the cost, and by how much it grew for each factor by which the size did.

    The last column is 1 where the cost grows linearly, less where a fixed part still counts.
    """
    yield f"{'':<16}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'lines out':>11}{'cost / size':>13}"
    before: Row | None = None
    for row in rows:
        wall, cpu, peak = (median(row.costs, what) for what in ("wall", "cpu", "peak"))
        line = f"{row.label:<16}{wall:>9.2f}{cpu:>9.2f}{peak:>9.0f}{row.costs[-1].lines:>11,}"
        if before is not None:
            factor = row.amount / before.amount
            line += f"{cpu / max(median(before.costs, 'cpu'), 1e-3) / factor:>13.2f}"
        yield line
        before = row
