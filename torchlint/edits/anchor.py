"""What a finding is known again by after lines have moved and code was reformatted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import libcst as cst

from torchlint.diagnostic import Anchor, essence

_PIECE = re.compile(
    r"""
      (?P<string> '''(?:[^\\']|\\[\s\S]|'(?!''))*''' | \"\"\"(?:[^\\"]|\\[\s\S]|"(?!""))*\"\"\"
      | '(?:[^\\'\r\n]|\\[\s\S])*' | "(?:[^\\"\r\n]|\\[\s\S])*" )
    | \#[^\r\n]*
    | (?: \s | \\\r?\n )+
    """,
    re.VERBOSE,
)
_BLANK_BETWEEN_WORDS = re.compile(r"(?<=\w) (?=\w)")
_LAST_COMMA = re.compile(r",(?=[)\]}])")
_LONGEST = 100
_DIGITS = 16


def anchor(enclosing: Iterable[cst.CSTNode], statement: str) -> Anchor:
    """Return the anchor of a finding from the node and its ancestors, innermost first, and its statement's code."""
    names = [node.name.value for node in enclosing if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
    return Anchor(".".join(reversed(names)), shortened(normalised(statement)))


def normalised(code: str) -> str:
    """Return code without what formatters change: white space, comments, last commas, the kind of plain quotes."""
    parts: list[str] = []
    gaps: list[str] = []
    position = 0
    for match in _PIECE.finditer(code):
        gaps.append(code[position : match.start()])
        parts.append(_requoted(match["string"]) if match["string"] else " ")
        position = match.end()
    gaps.append(code[position:])
    joined = "".join(gap + part for gap, part in zip(gaps, [*parts, ""], strict=True))
    return _tightened(joined)


def _requoted(string: str) -> str:
    inner = string[1:-1]
    is_plain = string[0] == "'" and not string.startswith("'''") and not set(inner) & {'"', "\\"}
    return f'"{inner}"' if is_plain else string


def _tightened(code: str) -> str:
    """Return code with blanks between words only; what stands in strings is treated alike, which does no harm."""
    collapsed = " ".join(code.split())
    kept = _BLANK_BETWEEN_WORDS.sub("\0", collapsed).replace(" ", "").replace("\0", " ")
    return _LAST_COMMA.sub("", kept)


def shortened(text: str) -> str:
    """Return a text that is short enough for a line, and still differs where the whole text does."""
    kept = essence(text)
    if len(kept) <= _LONGEST:
        return text
    digest = hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_LONGEST]}... {digest[:_DIGITS]}"
