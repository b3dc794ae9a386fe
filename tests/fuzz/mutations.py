"""Changes to a text that keep it Python as often as not, and often keep what the rules look for."""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from hypothesis import strategies as st

Mutation = Callable[[str, "Choice"], str]

_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_IMPORT = re.compile(r"^import torch$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_HEADERS = (
    "if flag:",
    "for index in range(3):",
    "while busy():",
    "with torch.no_grad():",
    "with open(path) as file:",
    "def inner():",
    "class Inner:",
    "if __name__ == '__main__':",
    "async def inner():",
)
_NUMBERS = ("0", "1", "2", "1_000", "0x10", "1e400", "3.5", "1j")
_EXPRESSIONS = (
    "None",
    "lambda: 0",
    "[y for y in z]",
    "x[0]",
    "f(*args, **kwargs)",
    "(yield)",
    "a if b else c",
    "f'{x}'",
    "-1",
)
_TOKENS = (
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=",
    ".",
    "*",
    "if",
    "else",
    "lambda",
    "not",
    "in",
    "\\",
    '"',
    "'''",
    "#",
    "@",
    ";",
)


class Choice:
    """Random choices that hypothesis can make smaller."""

    def __init__(self, draw: Callable[..., object]) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        """Return an index below a count, which is at least 1."""
        return int(str(self._draw(st.integers(0, max(0, count - 1)))))

    def of(self, items: Sequence[str]) -> str:
        """Return one of the items."""
        return items[self.below(len(items))]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def delete_line(text: str, choice: Choice) -> str:
    """Return the text without one of its lines."""
    lines = _lines(text)
    if lines:
        del lines[choice.below(len(lines))]
    return "".join(lines)


def repeat_line(text: str, choice: Choice) -> str:
    """Return the text with one of its lines twice, the second time perhaps elsewhere."""
    lines = _lines(text)
    if lines:
        lines.insert(choice.below(len(lines)), lines[choice.below(len(lines))])
    return "".join(lines)


def swap_lines(text: str, choice: Choice) -> str:
    """Return the text with two of its lines exchanged."""
    lines = _lines(text)
    if lines:
        one, other = choice.below(len(lines)), choice.below(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def wrap_lines(text: str, choice: Choice) -> str:
    """Return the text with lines of the same block put under a header of their own."""
    lines = _lines(text)
    if not lines:
        return text
    first = choice.below(len(lines))
    indent = _indent(lines[first])
    last = first + 1
    while (
        last < len(lines) and last - first < 6 and (_indent(lines[last]).startswith(indent) or not lines[last].strip())
    ):
        last += 1
    wrapped = [f"    {line}" if line.strip() else line for line in lines[first:last]]
    return "".join([*lines[:first], f"{indent}{choice.of(_HEADERS)}\n", *wrapped, *lines[last:]])


def rename(text: str, choice: Choice) -> str:
    """Return the text where one word is another word of the text throughout."""
    words = sorted({word for word in _WORD.findall(text) if not keyword.iskeyword(word)})
    if len(words) < 2:
        return text
    old, new = choice.of(words), choice.of([*words, "größe", "self", "torch", "x"])
    return re.sub(rf"\b{old}\b", new, text)


def alias_torch(text: str, choice: Choice) -> str:
    """Return the text with torch under another name, or its names imported one by one."""
    if choice.below(2):
        return re.sub(r"\btorch\.", "th.", re.sub(r"^import torch$", "import torch as th", text, flags=re.MULTILINE))
    return re.sub(
        r"^import torch$", "import torch\nfrom torch import *\nfrom torch import nn", text, flags=re.MULTILINE
    )


def change_number(text: str, choice: Choice) -> str:
    """Return the text with one number changed."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text
    found = numbers[choice.below(len(numbers))]
    return (
        text[: found.start()] + choice.of(("0", "1", "2", "1_000", "0x10", "1e400", "3.5", "1j")) + text[found.end() :]
    )


def replace_word(text: str, choice: Choice) -> str:
    """Return the text with one word replaced by an expression."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    found = words[choice.below(len(words))]
    return text[: found.start()] + choice.of(_EXPRESSIONS) + text[found.end() :]


def _tokens(text: str) -> list[tuple[int, int]]:
    """Return where the tokens of the text stand, as far as it can be read."""
    return list(_token_places(text))


def _token_places(text: str) -> Iterator[tuple[int, int]]:
    starts = [0]
    for line in _lines(text):
        starts.append(starts[-1] + len(line))
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string.strip() and token.end[0] <= len(starts):
                yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]


def delete_token(text: str, choice: Choice) -> str:
    """Return the text without one of its tokens."""
    tokens = _tokens(text)
    if not tokens:
        return text
    start, end = tokens[choice.below(len(tokens))]
    return text[:start] + text[end:]


def insert_token(text: str, choice: Choice) -> str:
    """Return the text with a token more."""
    place = choice.below(len(text) + 1)
    return text[:place] + f" {choice.of(_TOKENS)} " + text[place:]


def comment_inside(text: str, choice: Choice) -> str:
    """Return the text with a comment and a new line after a bracket or comma, and trailing white space."""
    places = [match.end() for match in re.finditer(r"[(\[{,]", text)]
    if not places:
        return text
    place = places[choice.below(len(places))]
    return f"{text[:place]}  # why: {choice.of(('ä', 'noqa', 'type: ignore', 'TODO'))} \n      {text[place:]}"


def continue_line(text: str, choice: Choice) -> str:
    """Return the text with a line continued by a backslash between two tokens."""
    tokens = _tokens(text)
    if not tokens:
        return text
    place = tokens[choice.below(len(tokens))][1]
    return f"{text[:place]} \\\n  {text[place:]}"


def join_statements(text: str, choice: Choice) -> str:
    """Return the text with one line joined to the next by a semicolon."""
    lines = _lines(text)
    if len(lines) < 2:
        return text
    index = choice.below(len(lines) - 1)
    lines[index : index + 2] = [f"{lines[index].rstrip()}; {lines[index + 1].lstrip()}"]
    return "".join(lines)


def parenthesise(text: str, choice: Choice) -> str:
    """Return the text with parentheses around one word."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    found = words[choice.below(len(words))]
    return f"{text[: found.start()]}({found[0]}){text[found.end() :]}"


def other_newlines(text: str, choice: Choice) -> str:
    """Return the text with the newlines of another system, or with a form feed."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return choice.of((plain.replace("\n", "\r\n"), plain.replace("\n", "\r"), f"\x0c{plain}", plain.rstrip("\n")))


def cut(text: str, choice: Choice) -> str:
    """Return the start of the text."""
    return text[: choice.below(len(text) + 1)]


MUTATIONS: tuple[Mutation, ...] = (
    delete_line,
    repeat_line,
    swap_lines,
    wrap_lines,
    rename,
    alias_torch,
    change_number,
    replace_word,
    comment_inside,
    continue_line,
    join_statements,
    parenthesise,
    other_newlines,
    delete_token,
    insert_token,
    cut,
)
"""The last three mostly leave no Python; a run takes them more seldom."""

_GENTLE = len(MUTATIONS) - 3


def mutated(text: str, choice: Choice) -> str:
    """Return the text after one to four mutations, of which one in eight may be a rough one."""
    for _ in range(1 + choice.below(4)):
        rough = choice.below(8) == 7
        text = MUTATIONS[choice.below(len(MUTATIONS) if rough else _GENTLE)](text, choice)
    return text
