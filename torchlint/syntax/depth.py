"""Text that is nested too deeply for the recursive parser, found without parsing it.

The native parser of libcst overflows any stack on expressions that are deep enough, and the process dies. Deep are
not only brackets: each operator, attribute and call of a chain is a level, and so is each ``elif`` of a ladder.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

MOST_BRACKETS = 200
"""Nested brackets that Python itself allows."""

MOST_LEVELS = 2000
"""Levels of one expression or ladder; the parser's time grows with their square, to seconds here."""

MOST_PATTERN_STEPS = 4**10
"""What the parser does for all patterns of ``match`` in a file, at worst: each bracket within another makes one take
four times as long, which comes to a second here."""

_STATEMENT = re.compile(
    r"\n[ \t]*(?=(?:def|class|return|import|while|with|try|raise|del|assert|pass|elif|except|break|continue)\b|@)"
)
_BRACKET = re.compile(r"[()\[\]{}]")
_STEP = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_LEVELS = (*".([{+-*/%@&|^~\"'", "lambda", "not ", " if ", "or ", "and ")
_TOKEN = re.compile(
    r"""
      (?P<prefix>\b[rRbBuUfFtT]{1,2})?(?P<string>
          '''(?:[^\\']|\\[\s\S]|'(?!''))*''' | \"\"\"(?:[^\\"]|\\[\s\S]|"(?!""))*\"\"\"
        | '(?:[^\\'\n]|\\[\s\S])*'              | "(?:[^\\"\n]|\\[\s\S])*" )
    | (?P<comment>\#[^\n\r]*)
    | (?P<continued>\\\r?\n)
    | (?P<end>[\n\r;])
    | (?P<comma>,)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<number>\b\d[\w.]*)
    | (?P<level>\*\*|//|[-.+*/%@&|^~]|\b(?:lambda|not|if|or|and|for)\b)
    """,
    re.VERBOSE,
)
_CASE = re.compile(r"^[ \t]*case\b", re.MULTILINE)
_INDENTED = re.compile(r"^([ \t]*)(?:(elif)\b|[^\s#])", re.MULTILINE)


class TooDeep(NamedTuple):
    """What is too deep, and the offset at which it gets so."""

    message: str
    offset: int


def find_too_deep(text: str) -> TooDeep | None:
    """Return the first place that the parser cannot be trusted with.

    A bound that costs next to nothing comes first, and clears almost every file.
    """
    if any(_may_be_deep(chunk) for chunk in _STATEMENT.split(text) if len(chunk) > MOST_BRACKETS):
        found = _scan(text)
        if found is not None:
            return found
    found = _deep_patterns(text) if "case" in text and "match" in text else None
    return found or (_long_ladder(text) if text.count("elif") > MOST_LEVELS else None)


def _may_be_deep(chunk: str) -> bool:
    """Return whether the text could hold too deep an expression; words that only start statements separate chunks."""
    opened = chunk.count("(") + chunk.count("[") + chunk.count("{")
    if opened > MOST_BRACKETS:
        steps = (_STEP[bracket] for bracket in _BRACKET.findall(chunk))
        # Brackets in strings count too, so that the bound is lower than the limit.
        if max(accumulate(steps)) > MOST_BRACKETS // 2:
            return True
    return len(chunk) > MOST_LEVELS and sum(map(chunk.count, _LEVELS)) > MOST_LEVELS


def _scan(text: str) -> TooDeep | None:
    """Return the first place that is too deep; strings and comments hold no levels, replacement fields do."""
    waiting: list[int] = []  # per open bracket, the levels before it within its own bracket
    here = around = 0  # levels since the last comma of the innermost bracket, and in all brackets around it
    for match in _TOKEN.finditer(text):
        kind, inner = match.lastgroup, 0
        if kind == "open":
            waiting.append(here)
            around, here = around + here + 1, 0
        elif kind == "close" and waiting:
            here = waiting.pop()
            around, here = around - here - 1, here + 1
        elif kind == "comma" or (kind == "end" and not waiting):
            here = 0
        elif kind == "level":
            here += 1
        elif kind == "string":
            here += 1
            inner = _levels_of_fields(match)
        if len(waiting) > MOST_BRACKETS:
            return TooDeep(f"more than {MOST_BRACKETS} nested brackets", match.start())
        if here + around + inner > MOST_LEVELS:
            return TooDeep(f"an expression with more than {MOST_LEVELS:,} nested operations", match.start())
    return None


def _levels_of_fields(string: re.Match[str]) -> int:
    """Return a bound on how deep the replacement fields of an f-string are, 0 for other strings."""
    if not {"f", "F", "t", "T"} & set(string["prefix"] or ""):
        return 0
    return sum(map(string[0].count, _LEVELS))


def _deep_patterns(text: str) -> TooDeep | None:
    """Return the place where the patterns of ``match`` have got too deep, all together."""
    steps = 0
    for case in _CASE.finditer(text):
        steps += 4 ** _depth_of_pattern(text, case.end())
        if steps > MOST_PATTERN_STEPS:
            return TooDeep("patterns with too many nested brackets", case.start())
    return None


def _depth_of_pattern(text: str, start: int) -> int:
    """Return how deep the brackets are nested up to the guard or the colon of a ``case``."""
    depth = deepest = 0
    position = start
    for match in _TOKEN.finditer(text, start):
        if depth == 0 and (":" in text[position : match.start()] or match[0] == "if" or match.lastgroup == "end"):
            break
        depth += {"open": 1, "close": -1}.get(match.lastgroup or "", 0)
        deepest = max(deepest, depth)
        position = match.end()
        if deepest > MOST_BRACKETS:
            break
    return deepest


def _long_ladder(text: str) -> TooDeep | None:
    """Return the place where one ``if`` has too many ``elif``."""
    rungs: dict[int, int] = {}
    for match in _INDENTED.finditer(text):
        indent = len(match[1].expandtabs())
        rungs = {other: count for other, count in rungs.items() if other < indent or (match[2] and other == indent)}
        if match[2]:
            rungs[indent] = rungs.get(indent, 0) + 1
            if rungs[indent] > MOST_LEVELS:
                return TooDeep(f"more than {MOST_LEVELS:,} `elif` in a row", match.start())
    return None
