"""The command line: arguments to settings, a run, an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""

_LEAVES_NOTHING = {"check", "fix", "rules", "--version", "-V", "--help", "-h"}
"""What has nothing to do at exit: no process of its own still runs, no folder is to be removed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; after an interrupt at once, whatever other threads are doing."""
    from torchlint.cli.streams import OutputError, finish, protect, silence

    protect()
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in _LEAVES_NOTHING:
        gc.disable()  # the engine collects between files; to look through what was imported would only take time
    try:
        code = run(given)
        finish()
    except BrokenPipeError:  # nobody reads any more
        silence(sys.stdout)
        code = CLEAN
    except OutputError as error:
        code = ERROR
        print(f"error: {error}", file=sys.stderr)
    is_watched = sys.getprofile() or sys.gettrace()
    if code == INTERRUPTED or (given and given[0] in _LEAVES_NOTHING and not is_watched):
        os._exit(code)  # freeing every object first would take a tenth of the time of a small file
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
