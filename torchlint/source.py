"""One file: bytes to text and back, offsets to positions and back, and writing that never leaves half a file."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from torchlint.atomic import replace_file
from torchlint.diagnostic import Cell, Position

LARGEST_FILE = 2_000_000
"""Files with more bytes than this are skipped: somebody's generator wrote them, and each takes seconds."""

NOTEBOOK = ".ipynb"
"""The suffix of notebooks."""

_BOM = b"\xef\xbb\xbf"
_MARK = "\ufeff"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NEWLINE = re.compile(r"\r\n?|\n")


class SourceError(Exception):
    """A file cannot be read or written; the message says why in one line, without the path."""


@dataclass(frozen=True, slots=True)
class Source:
    """The decoded text of one file, and what it takes to write it back in the same form."""

    path: str
    text: str
    """Without the byte order mark, with the newlines as they are in the file."""

    encoding: str
    bom: bool
    data_digest: str
    """Of the bytes as they were read."""

    def position(self, offset: int) -> Position:
        r"""Return the row and column of the offset; rows end where Python ends them (\n, \r\n, \r)."""
        if not 0 <= offset <= len(self.text):
            raise ValueError(f"offset {offset} is not within {self.path}")
        starts = line_starts(self.text)
        row = bisect_right(starts, offset)
        return Position(row, offset - starts[row - 1] + 1)

    def offset(self, position: Position) -> int:
        """Return the offset of the position, or of the nearest one that exists: no position fails."""
        starts = line_starts(self.text)
        if position.row < 1:
            return 0
        if position.row > len(starts):
            return len(self.text)
        last = starts[position.row] - 1 if position.row < len(starts) else len(self.text)
        return min(starts[position.row - 1] + max(position.column, 1) - 1, last)

    def encode(self, text: str) -> bytes:
        """Return a text as bytes in the form of this file.

        Raises:
            SourceError: the encoding cannot hold the text, or does not give back the bytes that were read.
        """
        if digest(self._bytes(self.written(self.text))) != self.data_digest:
            raise SourceError(f"its bytes cannot be kept as they are in the encoding {self.encoding}")
        return self._bytes(self.written(text))

    def written(self, text: str) -> str:
        """Return what the file holds, without a byte order mark, if this is its text."""
        return text

    @property
    def byte_order_mark(self) -> str:
        """Return the byte order mark as text, empty if the file has none."""
        return _MARK if self.bom else ""

    def whole(self, text: str) -> str:
        """Return what the file holds, with its byte order mark, if this is its text."""
        return self.byte_order_mark + self.written(text)

    def cells(self) -> tuple[Cell, ...]:
        """Return the code cells, none unless the file is a notebook."""
        return ()

    def shown(self, line: str) -> str | None:
        """Return a line of the text as people see it, None if they do not."""
        return line

    def place(self, row: int) -> str:
        """Return where a row of the text is, in words."""
        return f"{self.path}:{row}"

    def _bytes(self, text: str) -> bytes:
        try:
            return (_BOM if self.bom else b"") + text.encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(f"the encoding {self.encoding} cannot hold the text: {error}") from error


@lru_cache(maxsize=4)
def line_starts(text: str) -> tuple[int, ...]:
    """Return the offset at which each row starts."""
    return (0, *(match.end() for match in _NEWLINE.finditer(text)))


def digest(data: bytes) -> str:
    """Return a short name for these bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def source_from_text(text: str, path: str = "<stdin>") -> Source:
    """Return the source of a text that is in no file."""
    bom = text.startswith(_MARK)
    data = text.encode("utf-8", "surrogatepass")
    return Source(path, text[1:] if bom else text, "utf-8", bom, digest(data))


def source_from_bytes(data: bytes, path: str = "<stdin>") -> Source:
    """Return the source of a file's bytes, decoded as Python decodes them.

    Raises:
        SourceError: the encoding is unknown, or the bytes are not in it.
    """
    if data.startswith(_UTF_16_MARKS):
        raise SourceError("UTF-16 is no encoding for Python code; save the file as UTF-8")
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        reason = "its byte order mark contradicts its declared encoding" if data.startswith(_BOM) else error.msg
        raise SourceError(f"cannot decode: {_undecodable(data) or reason}") from error
    except LookupError as error:  # since Python 3.14
        raise SourceError("cannot decode: its declared encoding is not a text encoding") from error
    bom = data.startswith(_BOM)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = (data[len(_BOM) :] if bom else data).decode(encoding)
    except LookupError as error:
        raise SourceError(f"cannot decode: {encoding} is not a text encoding") from error
    except UnicodeError as error:
        raise SourceError(f"cannot decode: {_undecodable(data) or error}") from error
    return Source(path, text, encoding, bom, digest(data))


def _undecodable(data: bytes) -> str:
    """Return what is not UTF-8 in the data and what to do about it, nothing where it is UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        return (
            f"byte 0x{data[error.start]:02x} in line {row} is not valid UTF-8; "
            "save the file as UTF-8 or declare its encoding in the first line"
        )
    return ""


def read_source(path: str) -> Source:
    """Return the source of a file.

    Raises:
        SourceError: it is not a regular file, is larger than LARGEST_FILE, or cannot be read or decoded.
    """
    return source_from_bytes(read_bytes(path, limit=LARGEST_FILE), path)


def file_digest(path: str) -> str:
    """Return the digest that the source of a file would have.

    Raises:
        SourceError: it is not a regular file, is larger than LARGEST_FILE, or cannot be read.
    """
    return digest(read_bytes(path, limit=LARGEST_FILE))


def read_bytes(path: str, limit: int | None = None) -> bytes:
    """Return the bytes of a file.

    Raises:
        SourceError: it is not a regular file, is larger than the limit, or cannot be read.
    """
    try:
        # Opening a named pipe would wait for a writer, so that the kind of file is asked for first; without blocking,
        # since it may be another by the time it is opened.
        _refuse_unless_regular(os.stat(path))
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            _refuse_unless_regular(status)
            if limit is not None and status.st_size > limit:
                raise SourceError(f"it is larger than {limit // 1_000_000} MB")
            return file.read()
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read: {_reason(error)}") from error


def _refuse_unless_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise SourceError("it is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise SourceError("it is not a regular file")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def write_atomically(path: str, data: bytes, expected_digest: str, root: str | None = None) -> None:
    """Put the data in place of a file's content, all of it or nothing, and keep the file's mode.

    A symbolic link stays one: what it leads to is written, provided that it lies below ``root`` (by default the
    current folder if the link lies in it, else the folder of the link).

    Raises:
        SourceError: the file changed since it was read, is read-only, leads out of ``root``, or cannot be written.
    """
    real = _real_path(path, root)
    try:
        status = os.stat(real)
        _refuse_unless_regular(status)
        if not status.st_mode & 0o222 or not os.access(real, os.W_OK):
            raise SourceError("the file is read-only")
        replace_file(real, data, like=status, ready=lambda: _refuse_if_changed(real, expected_digest))
    except (OSError, ValueError) as error:
        raise SourceError(_reason(error)) from error


def _real_path(path: str, root: str | None) -> str:
    real = os.path.realpath(path)
    if not os.path.islink(path):
        return real
    if root is None:
        folder = os.path.realpath(os.path.dirname(path) or ".")
        root = os.getcwd() if _is_below(folder, os.path.realpath(os.getcwd())) else folder
    if not _is_below(real, os.path.realpath(root)):
        raise SourceError(f"it is a link to {real}, which is not below {root}")
    return real


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _refuse_if_changed(real: str, expected_digest: str) -> None:
    if digest(read_bytes(real)) != expected_digest:
        raise SourceError("the file changed after it was read; run again")
