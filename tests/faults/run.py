"""``python -m tests.faults.run``: every fault that is known to happen, and what became of it; see ``--help``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.expensive import EXPENSIVE, NotRunError
from tests.faults.faults import CHEAP, Fault

OK, WRONG, INCOMPLETE = 0, 1, 2


def main(arguments: Sequence[str] | None = None, faults: Mapping[str, Fault] | None = None) -> int:
    """Run the program and return its exit code: 0, 1 after a failure, 2 if a fault could not be made here."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description=__doc__)
    parser.add_argument("--only", metavar="WORDS", default="", help="the faults whose name has these words in it")
    choice = parser.parse_args(arguments)
    known = {**CHEAP, **EXPENSIVE} if faults is None else faults
    chosen = {name: fault for name, fault in known.items() if choice.only in name}
    width = max(map(len, chosen), default=0)
    codes = [_try(name.ljust(width), fault) for name, fault in chosen.items()]
    print(f"{codes.count(OK)} of {len(codes)} faults were survived")
    return WRONG if WRONG in codes else INCOMPLETE if INCOMPLETE in codes or not codes else OK


def _try(name: str, fault: Fault) -> int:
    """Print a row of the table and return what it comes to."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            words, code = f"survived: {fault(Path(folder))}", OK
        except NotRunError as reason:
            words, code = f"NOT RUN: {reason}", INCOMPLETE
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            words, code = f"FAILED: {error}", WRONG
    print(f"{name}  {time.monotonic() - start:5.0f} s  {words}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
