"""Notebooks as one program: code cells to text and back, everything else in the file left as it is, to the byte."""

from __future__ import annotations

import difflib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from json.decoder import JSONDecoder
from typing import Any

from torchlint.diagnostic import Cell
from torchlint.magics import hidden, is_python_cell, stand_in, words
from torchlint.source import Source, SourceError, digest, line_starts, read_bytes

LARGEST_NOTEBOOK = 50_000_000
"""Most of a notebook's bytes are pictures, which cost nothing but the reading."""

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENTED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]+[^\s#]")
_DECODER = JSONDecoder()


class OtherLanguageError(SourceError):
    """The notebook is no Python program."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Where the ``source`` of a code cell stands in the file."""

    number: int
    start: int
    end: int
    text: str
    lines: tuple[int, ...]
    """Offset of what holds each line of the text."""


@dataclass(frozen=True, slots=True)
class NotebookSource(Source):
    """The code cells as one text: a comment before each says which it is, and stand-ins hide what is no Python."""

    raw: str
    """The file, without a byte order mark."""

    mark: str
    """What sets the comments and stand-ins apart from all that the cells hold."""

    originals: Mapping[str, tuple[str, str]]
    """Name of a stand-in to the line that it was at first and the line that it stands for."""

    spans: tuple[_Span, ...]

    def written(self, text: str) -> str:
        """Return the file with the cells of a text in place of those that differ."""
        cells = dict(self._split(text))
        parts: list[str] = []
        at = 0
        if list(cells) != [span.number for span in self.spans]:
            raise SourceError("a fix reaches over the end of a cell")
        for span in self.spans:
            if cells[span.number] != span.text:
                text = _with_body(cells[span.number], span.text)
                parts += [self.raw[at : span.start], _dumped(text, self.raw[span.start : span.end])]
                at = span.end
        return "".join([*parts, self.raw[at:]])

    def cells(self) -> tuple[Cell, ...]:
        """Return where the cells are, in the text as it is now and in the file that it would make."""
        written = self.written(self.text)
        spans = self.spans if written == self.raw else tuple(_spans(written))
        starts = line_starts(written)
        rows = {span.number: [bisect_right(starts, at) for at in span.lines] for span in spans}
        marks = self._marks().finditer(self.text)
        return tuple(
            Cell(number, self.position(match.end()).row + 1, tuple(rows[number]))
            for match in marks
            for number in (int(match["number"]),)
        )

    def shown(self, line: str) -> str | None:
        """Return a line of the text as it is in its cell, None for a line that is in none."""
        if self._marks().fullmatch(line):
            return None
        return self._original(line)

    def place(self, row: int) -> str:
        """Return where a row of the text is, in words."""
        cell = max((cell for cell in self.cells() if cell.first <= row), key=lambda cell: cell.first)
        return f"{self.path}:cell {cell.number}:{row - cell.first + 1}"

    def _marks(self) -> re.Pattern[str]:
        return re.compile(rf"^(?:if True:  )?# cell (?P<number>\d+) of {self.mark}$", re.MULTILINE)

    def _split(self, text: str) -> Iterator[tuple[int, str]]:
        marks = list(self._marks().finditer(text))
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        for mark, end in zip(marks, ends, strict=False):
            lines = text[mark.end() + 1 : end].removesuffix("\n").split("\n")
            yield int(mark["number"]), "\n".join(map(self._original, lines))

    def _original(self, line: str) -> str:
        """Return the line that a stand-in stands for, other lines as they are."""
        _, found, name = line.partition(f"  # {self.mark}-")
        if not found:
            return line
        first, original = self.originals.get(name, ("", ""))
        if line.lstrip() != first.lstrip():
            raise SourceError("a fix reaches into a line that is no Python")
        return original if line == first else _indent(line) + original.lstrip()


def read_notebook(path: str) -> NotebookSource:
    """Return the code of a notebook.

    Raises:
        SourceError: it cannot be read, or is no notebook that this understands.
        OtherLanguageError: it is a notebook of another language.
    """
    return notebook_from_bytes(read_bytes(path, limit=LARGEST_NOTEBOOK), path)


def notebook_from_bytes(data: bytes, path: str) -> NotebookSource:
    """Return the code of a notebook's bytes.

    Raises:
        SourceError: it is no notebook that this understands.
        OtherLanguageError: it is a notebook of another language.
    """
    try:
        decoded = data.decode("utf-8")
        document = json.loads(decoded.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise SourceError(f"it is no notebook: byte 0x{data[error.start]:02x} is not valid UTF-8") from error
    except json.JSONDecodeError as error:
        raise SourceError(f"it is no notebook: line {error.lineno}: {error.msg.removesuffix(' at')}") from error
    except RecursionError as error:
        raise SourceError("it is no notebook: it is nested too deep") from error
    _refuse_unless_python(document)
    raw, mark = decoded.removeprefix("\ufeff"), digest(data)[:12]
    spans = tuple(_spans(raw))
    cells = [(span, hidden(span.text)) for span in spans]
    names = frozenset(word for span, rows in cells for word in _visible_words(span.text, rows))
    parts: list[str] = []
    originals: dict[str, tuple[str, str]] = {}
    for span, rows in cells:
        python = is_python_cell(span.text)
        lines = span.text.split("\n")
        shown = list(lines)
        for index, first in rows:
            name = str(len(originals))
            indent = _indent(lines[first]) if python else ""
            shown[index] = f"{indent}{stand_in(lines[index], names, index != first, python)}  # {mark}-{name}"
            originals[name] = shown[index], lines[index]
        # IPython takes the indentation of a cell's first line from all its lines; here it is that of a block.
        block = "if True:  " if python and _INDENTED.match(span.text) else ""
        parts += [f"{block}# cell {span.number} of {mark}", *shown]
    text = "".join(part + "\n" for part in parts)
    return NotebookSource(path, text, "utf-8", decoded != raw, digest(data), raw, mark, originals, spans)


def _with_body(text: str, old: str) -> str:
    """Return the text of a cell with a statement below its ``%%`` line, which IPython refuses to run alone."""
    first, _, body = text.lstrip().partition("\n")
    had_body = old.lstrip().partition("\n")[2].strip()
    return f"{text.rstrip()}\npass" if first.startswith("%%") and had_body and not body.strip() else text


def _visible_words(text: str, rows: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the words of the lines that are not hidden."""
    gone = {index for index, _ in rows}
    for index, line in enumerate(text.split("\n")):
        if index not in gone:
            yield from words(line)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _refuse_unless_python(document: Any) -> None:
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        is_old = isinstance(document, dict) and "worksheets" in document
        raise SourceError(
            "it is a notebook of an old format: `jupyter nbconvert --to notebook` updates it"
            if is_old
            else "it is no notebook: it has no list of cells"
        )
    metadata = document.get("metadata")
    tables = [metadata.get(key) for key in ("kernelspec", "language_info")] if isinstance(metadata, dict) else []
    kernel, info = (table if isinstance(table, dict) else {} for table in (tables or [{}, {}]))
    language = kernel.get("language") or info.get("name") or "python"
    if str(language).lower() not in ("python", "ipython"):
        raise OtherLanguageError(f"it is a notebook in {language}, not in Python")
    for number, cell in enumerate(document["cells"], start=1):
        source = cell.get("source") if isinstance(cell, dict) else None
        lines = [source] if isinstance(source, str) else source
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise SourceError(f"it is no notebook: cell {number} has no source")


def _spans(raw: str) -> Iterator[_Span]:
    """Yield the sources of the code cells of a valid notebook."""
    top = dict(_members(raw, _skip(raw, 0)))
    for number, (start, _) in enumerate(_items(raw, top["cells"][0]), start=1):
        cell = dict(_members(raw, start))
        if json.loads(raw[slice(*cell.get("cell_type", (0, 0)))] or "null") != "code":
            continue
        first, end = cell["source"]
        pieces = list(_items(raw, first)) if raw[first] == "[" else [(first, end)]
        texts = [json.loads(raw[slice(*piece)]) for piece in pieces]
        text = "".join(texts)
        held = [at for (at, _), piece in zip(pieces, texts, strict=True) for _ in range(piece.count("\n"))]
        lines = (*held, pieces[-1][0] if pieces else first)
        yield _Span(number, first, end, text, lines)


def _members(raw: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the keys of the object that begins here, with the places of their values."""
    at = _skip(raw, at + 1)
    while raw[at] != "}":
        key, at = _DECODER.raw_decode(raw, at)
        start = _skip(raw, _skip(raw, at) + 1)
        _, end = _DECODER.raw_decode(raw, start)
        yield key, (start, end)
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at


def _items(raw: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the values in the array that begins here."""
    at = _skip(raw, at + 1)
    while raw[at] != "]":
        _, end = _DECODER.raw_decode(raw, at)
        yield at, end
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at


def _skip(raw: str, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


def _dumped(text: str, old: str) -> str:
    """Return a new source as JSON in the style of the old: same layout, same escapes, equal lines as they were."""
    ascii_only = old.isascii() and re.search(r"\\u(?!00[01])", old) is not None
    if old[0] != "[":
        return json.dumps(text, ensure_ascii=ascii_only)
    places = list(_items(old, 0))
    tokens = [old[start:end] for start, end in places]
    before = old[1 : places[0][0]] if places else ""
    between = old[places[0][1] : places[1][0]] if len(places) > 1 else f",{before}"
    after = old[places[-1][1] : -1] if places else ""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    former = [json.loads(token) for token in tokens]
    matcher = difflib.SequenceMatcher(None, former, lines, autojunk=False)
    fresh = chain.from_iterable(
        tokens[a:b] if tag == "equal" else (json.dumps(line, ensure_ascii=ascii_only) for line in lines[c:d])
        for tag, a, b, c, d in matcher.get_opcodes()
    )
    return f"[{before}{between.join(fresh)}{after}]"
