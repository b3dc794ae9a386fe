"""Random choices that hypothesis can make smaller, and the pieces of programs that all searches share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")
Lines = list[str]
_NAMES = re.compile(r"^(?:def |class )?(\w+)(?:, (\w+))? ?[=(:]")


class Choices:
    """Random choices; the first of several is the simplest."""

    def __init__(self, draw: Callable[..., object]) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        """Return a number below a count, which is at least 1."""
        return int(str(self._draw(st.integers(0, count - 1))))

    def of(self, *items: Item) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]

    def chance(self, one_in: int = 2) -> bool:
        """Return True once in so many times."""
        return self.below(one_in) == one_in - 1

    def some(self, items: Sequence[Item], most: int) -> list[Item]:
        """Return up to so many of the items, in any order and perhaps one twice."""
        return [self.of(*items) for _ in range(self.below(most + 1))]


def indented(lines: Sequence[str]) -> Lines:
    """Return the lines one level further in; an empty block holds ``pass``."""
    return [f"    {line}" if line else line for line in lines] or ["    pass"]


def placed(choices: Choices, lines: Lines) -> Lines:
    """Return lines at the top level, in a function that is called, in a loop or in a block."""
    kind = choices.below(10)
    if kind < 4:
        return lines
    if kind == 4:
        return [f"for step in range({choices.of(2, 1, 3, 0)}):", *indented(lines)]
    if kind == 5:
        return ["def made():", *indented([*lines, "seen.append(dict(locals()))"]), "made()", "made()"]
    if kind == 6:
        return [f"if {choices.of('True', 'len(seen) == 0', 'n > 1')}:", *indented(lines), "else:", "    missing = 1"]
    if kind == 7:
        return ["try:", *indented(lines), "finally:", "    seen.append('end')"]
    if kind == 8:
        header = choices.of("torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()")
        return [f"with {header}:", *indented(lines)]
    return ["class Holder:", *indented(["def work(self, n):", *indented(lines)]), "Holder().work(3)"]


def needed(setup: Sequence[Lines], lines: Lines) -> Lines:
    """Return the pieces of a set-up whose first name occurs in the lines, or in a piece that is needed."""
    found: list[Lines] = []
    for piece in reversed(setup):
        names = _NAMES.match(piece[0])
        used = "\n".join(line for each in [lines, *found] for line in each)
        if names and any(re.search(rf"\b{name}\b", used) for name in names.groups() if name):
            found.insert(0, piece)
    return [line for piece in found for line in piece]


def text(*parts: Lines | str) -> str:
    """Return the text of a program."""
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return "\n".join(lines) + "\n"
