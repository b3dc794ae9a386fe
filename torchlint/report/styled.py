"""Lines of styled spans: plain when piped, coloured on a terminal, from one source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Span: TypeAlias = "tuple[str, str]"
"""Text and the name of its style; the empty name is plain text."""

Line: TypeAlias = "list[Span]"

NOTE = "  = "
"""Begins a line of words about an excerpt; such lines are wrapped on a terminal."""

STYLES = {
    "path": "bold",
    "code": "bold red",
    "name": "red",
    "gutter": "blue",
    "mark": "bold red",
    "safe": "bold green",
    "unsafe": "bold yellow",
    "display": "bold cyan",
    "good": "green",
    "hint": "bold cyan",
    "dim": "dim",
    "strong": "bold",
    "header": "bold",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
}
"""Style names to rich styles; ``source`` is highlighted as Python."""


def plain(lines: Iterable[Line]) -> str:
    """Return the lines without any style, each ended by a newline."""
    return "".join("".join(text for text, _ in line).rstrip(" ") + "\n" for line in lines)


def painted(lines: Iterable[Line]) -> Iterator[Text]:
    """Yield each line as rich text."""
    from rich.text import Text

    for line in lines:
        painted_line = Text(no_wrap=False, overflow="fold", end="\n")
        for text, style in line:
            painted_line.append_text(_highlighted(text) if style == "source" else Text(text, STYLES.get(style, "")))
        painted_line.rstrip()
        yield painted_line


def _highlighted(text: str) -> Text:
    from rich.syntax import Syntax

    highlighted = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text)
    highlighted.rstrip()
    return highlighted


def show(lines: Iterable[Line], console: Console) -> None:
    """Print the lines on a terminal."""
    for line in painted(lines):
        indent = _hanging_indent(line.plain)
        if not indent or len(line) <= console.width:
            console.print(line, soft_wrap=True, highlight=False)
            continue
        first, *others = line[indent:].wrap(console, max(console.width - indent, 20))
        console.print(line[:indent] + first, soft_wrap=True, highlight=False)
        for other in others:
            console.print(" " * indent, other, sep="", soft_wrap=True, highlight=False)


def _hanging_indent(text: str) -> int:
    """Return by how much the continuation of a note (`  = words`) is indented, 0 for other lines."""
    return len(NOTE) if text.startswith(NOTE) else 0
