"""Where words go: coloured on a terminal, plain in a pipe, quiet once nobody reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from torchlint.cli.streams import silence, write_bytes
from torchlint.report.styled import Line, plain, show

if TYPE_CHECKING:
    from rich.console import Console


def wants_colour(choice: str, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether to colour the stream: the option decides, then NO_COLOR, FORCE_COLOR, the terminal."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR") or environment.get("CLICOLOR_FORCE"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"


class Output:
    """Standard output and standard error of one run."""

    def __init__(self, *, colour: str = "auto", quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._colours = wants_colour(colour, sys.stdout, os.environ)
        self._error_colours = wants_colour(colour, sys.stderr, os.environ)
        self._closed = False
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    @property
    def coloured(self) -> bool:
        """Whether standard output is coloured."""
        return self._colours

    @property
    def closed(self) -> bool:
        """Whether nobody reads standard output any more."""
        return self._closed

    def lines(self, lines: Iterable[Line]) -> None:
        """Print styled lines to standard output."""
        if self._closed:
            return
        try:
            if self._colours:
                show(lines, self.console())
            else:
                sys.stdout.write(plain(lines))
                sys.stdout.flush()
        except BrokenPipeError:
            self._close()

    def text(self, text: str) -> None:
        """Print text that programs read to standard output: in UTF-8 and with its own newlines, whatever the system."""
        self.data(text.encode("utf-8", errors="backslashreplace"))

    def data(self, data: bytes) -> None:
        """Print bytes as they are to standard output."""
        if self._closed:
            return
        try:
            write_bytes(sys.stdout, data)
        except BrokenPipeError:
            self._close()

    def console(self) -> Console:
        """Return a rich console on standard output with the colours decided here."""
        from rich.console import Console

        return Console(
            file=sys.stdout,
            force_terminal=True if self._colours else None,
            no_color=not self._colours,
            color_system="standard" if self._colours and not sys.stdout.isatty() else "auto",
            highlight=False,
            emoji=False,
            markup=False,
        )

    def error(self, message: str) -> None:
        """Print one line about what went wrong to standard error."""
        self._say("error", "31", message)

    def warning(self, message: str) -> None:
        """Print one line that does not change the exit code to standard error, unless quiet."""
        if not self.quiet:
            self._say("warning", "33", message)

    def aside(self, lines: Iterable[Line]) -> None:
        """Print styled lines to standard error, unless quiet."""
        if self.quiet:
            return
        if not self._error_colours:
            sys.stderr.write(plain(lines))
            return
        from rich.console import Console

        show(lines, Console(stderr=True, force_terminal=True, highlight=False, emoji=False, markup=False))

    def note(self, message: str) -> None:
        """Print a line to standard error, unless quiet."""
        if not self.quiet:
            sys.stderr.write(message + "\n")

    def _say(self, kind: str, colour: str, message: str) -> None:
        label = f"\x1b[1;{colour}m{kind}:\x1b[0m" if self._error_colours else f"{kind}:"
        sys.stderr.write(f"{label} {message}\n")

    def _close(self) -> None:
        """Send what is still written to nowhere, so that the reader who left hears no complaint."""
        self._closed = True
        silence(sys.stdout)
