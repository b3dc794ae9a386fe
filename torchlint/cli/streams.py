"""Standard streams that are closed, full or no longer read: one clear line, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


class OutputError(Exception):
    """Standard output cannot be written; the message says why."""


def protect() -> None:
    """Replace the standard streams by some that bear any fault."""
    sys.stdout, sys.stderr = _protected(sys.stdout, _Output), _protected(sys.stderr, _Notes)


def _protected(stream: TextIO | None, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:  # it was closed before the program began
        return open(os.devnull, "w", encoding="utf-8")
    if type(stream) is not io.TextIOWrapper:
        return stream
    encoding, errors = stream.encoding, stream.errors
    lines, through = stream.line_buffering, stream.write_through  # the latter with PYTHONUNBUFFERED
    return kind(stream.detach(), encoding=encoding, errors=errors, line_buffering=lines, write_through=through)


def finish() -> None:
    """Write what is still to be written.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    sys.stderr.flush()


def silence(stream: TextIO) -> None:
    """Send what is still written to a stream to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write_bytes(stream: TextIO, data: bytes) -> None:
    """Write bytes to a text stream, after all that was written before.

    Raises:
        OutputError: they cannot be written.
        BrokenPipeError: nobody reads any more.
    """
    try:
        stream.flush()
        rest = memoryview(data)
        while rest:  # with PYTHONUNBUFFERED a write may stop halfway
            rest = rest[stream.buffer.write(rest) :]
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(stream)
        raise _failed(error) from error


def _failed(error: OSError) -> OutputError:
    return OutputError(f"cannot write to standard output: {error.strerror or error}")


class _Output(io.TextIOWrapper):
    """Standard output: the first fault ends the run, unless it is that nobody reads any more."""

    def write(self, text: str) -> int:
        if text == "":  # click asks so whether it may write text, and takes any fault for a no
            return 0
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            silence(self)
            raise _failed(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            silence(self)
            raise _failed(error) from error


class _Notes(io.TextIOWrapper):
    """Standard error: what cannot be told is left out, and the exit code says it."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            silence(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            silence(self)
