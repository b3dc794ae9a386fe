"""What IPython understands and Python does not: lines and cells that begin with ``%``, ``!`` or ``?``."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Collection, Iterator

_PYTHON_CELLS = frozenset("time timeit capture prun python python3 pypy debug memit mprun lprun".split())
"""Cell magics whose cell is Python of the same program."""

_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.,\s]+=\s*(?:!|%\w))|[^#'\"]*\?\??\s*$")
_PROGRAM = re.compile(r"!|%\s*(?:alias|env|run|set_env|sx|system)\b")
"""What a line holds that runs a program, or shows the environment."""

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")
_PART = re.compile(
    r"""
      '''[^\\']*(?:(?:\\[\s\S]|'(?!''))[^\\']*)*(?:'''|\\?\Z)
    | \"\"\"[^\\"]*(?:(?:\\[\s\S]|"(?!""))[^\\"]*)*(?:\"\"\"|\\?\Z)
    | '(?:[^\\'\n]|\\[\s\S])*' | "(?:[^\\"\n]|\\[\s\S])*" | \#[^\n]* | [\[({] | [\])}] | \\\n | \n
    """,
    re.VERBOSE,
)
_RUN_INSIDE = re.compile(r"\s*%run\b.*\s-\w*i")
"""Runs a program that sees the names of the notebook."""


def is_python_cell(text: str) -> bool:
    """Return whether a cell holds Python, if only behind its first line."""
    first = text.lstrip().partition("\n")[0]
    return not first.startswith("%%") or first[2:].partition(" ")[0].strip() in _PYTHON_CELLS


def stand_in(line: str, names: Collection[str], goes_on: bool, python: bool) -> str:
    """Return Python for a line that is none: a call that nothing is known about, assigned where the line assigns.

    It is given those of the names that the line speaks of, all of them where it runs a program among them. ``goes_on``:
    the line goes on from the one before, and does nothing else.
    """
    assigned = re.match(r"\s*([\w.,\s]+?)\s*=\s*[!%]", line) if python and not goes_on else None
    target, rest = (f"{assigned[1]} = ", line[assigned.end(1) :]) if assigned is not None else ("", line)
    spoken_of = sorted(names) if _RUN_INSIDE.match(line) else [word for word in words(rest) if word in names]
    given = ", ".join(dict.fromkeys(spoken_of))
    if goes_on and not given:
        return "pass"
    function = "get_ipython" if python and not _PROGRAM.search(line) else "get_ipython().system"
    return f"{target}{function}({given})"


def words(text: str) -> Iterator[str]:
    """Yield what may be a name in a text: its words, but for keywords and what stands behind a dot."""
    yield from (word for word in _WORD.findall(text) if not keyword.iskeyword(word))


def hidden(text: str) -> list[tuple[int, int]]:
    """Return the indices of the lines of a cell that are no Python, each with that of the line it begins on."""
    if not is_python_cell(text):
        return [(index, 0) for index in range(text.count("\n") + 1)]
    if is_python(text):
        return []
    lines = text.split("\n")
    found: list[tuple[int, int]] = []
    row = 0
    while row < len(lines):
        if not _MAGIC.match(lines[row]):
            row += _height("\n".join(lines[row:]))
            continue
        first = row
        while row + 1 < len(lines) and lines[row].endswith("\\"):
            found.append((row, first))
            row += 1
        found.append((row, first))
        row += 1
    return found


def is_python(text: str) -> bool:
    """Return whether a text parses as cells do: ``await`` needs no function around it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _height(text: str) -> int:
    """Return how many rows the text goes on until no bracket, string or continuation is open."""
    depth = rows = 0
    for match in _PART.finditer(text):
        part = match.group()
        rows += part.count("\n")
        if part == "\n" and depth == 0:
            return rows
        depth += (part in "([{") - (part in ")]}" and depth > 0)
    return rows + 1
