"""Programs run on a pseudo-terminal, as a person would see and answer them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PATIENCE = 60
"""Seconds of silence after which a program counts as stuck."""


@dataclass(frozen=True)
class Screen:
    """What a program showed, and how it ended."""

    code: int
    text: str


def environment() -> dict[str, str]:
    """Return an environment in which torchlint is that of the checkout, without anything about colours."""
    unset = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm"}


def on_terminal(arguments: Sequence[str], folder: Path, *, keys: str = "", prompt: str = "] ") -> Screen:
    """Run torchlint on a terminal, pressing one key whenever it waits for one behind the prompt."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "torchlint", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, left = "", list(keys)
    try:
        while piece := _read(ours):
            shown += piece
            if shown.endswith(prompt) and left:
                _wait_until_keys_are_read_one_by_one(ours)
                os.write(ours, left.pop(0).encode())
        return Screen(process.wait(_PATIENCE), shown.replace("\r\n", "\n"))
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int) -> str:
    """Return what the program wrote since the last time, nothing if it has ended."""
    ready, _, _ = select.select([terminal], [], [], _PATIENCE)
    if not ready:
        raise TimeoutError("the program writes nothing and does not end")
    try:
        return os.read(terminal, 65536).decode()
    except OSError:  # Linux says so when the other end is closed
        return ""


def _wait_until_keys_are_read_one_by_one(terminal: int) -> None:
    """Wait until the program has switched the terminal, which forgets the keys that were pressed before."""
    end = time.monotonic() + _PATIENCE
    while termios.tcgetattr(terminal)[3] & termios.ICANON and time.monotonic() < end:
        time.sleep(0.005)
