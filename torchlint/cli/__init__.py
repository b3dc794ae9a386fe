"""The command line: arguments to settings, a run, an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; after an interrupt at once, whatever other threads are doing."""
    from torchlint.cli.streams import OutputError, finish, protect, silence

    protect()
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        finish()
    except BrokenPipeError:  # nobody reads any more
        silence(sys.stdout)
        code = CLEAN
    except OutputError as error:
        code = ERROR
        print(f"error: {error}", file=sys.stderr)
    if code == INTERRUPTED:
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; nothing that goes wrong ends in a traceback.

    Raises:
        OutputError: standard output cannot be written.
    """
    if list(arguments) in (["--version"], ["-V"]):
        from torchlint.version import __version__

        print(f"torchlint {__version__}")  # before click is imported: this must be instant
        return CLEAN
    from torchlint.cli.app import run_app

    return run_app(list(arguments))
