"""A temporary folder that goes away however its owner ends, together with the processes that work in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

# Waits for the end of its input, which comes when the owner has ended in any way, SIGKILL included.
_WATCH = """
import os, shutil, signal, sys, time
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except (OSError, AttributeError):
        pass
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


@dataclass(frozen=True, slots=True)
class Guarded:
    """The folder, and the list of process groups to end."""

    folder: Path
    _pipe: IO[str]

    def began(self, group: int) -> None:
        """Have the process group killed if this process ends before it."""
        self._tell(f"+{group}\n")

    def ended(self, group: int) -> None:
        """Leave the process group alone: its number may be another's soon."""
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self._pipe.write(line)
            self._pipe.flush()


@contextmanager
def guarded_folder(prefix: str) -> Iterator[Guarded]:
    """Yield a temporary folder; it is removed at the end, and also if this process is killed.

    SIGTERM and SIGHUP interrupt the block as Ctrl-C does.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    watch = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCH, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=folder.anchor,
    )
    assert watch.stdin is not None
    try:
        with _signals_interrupt():
            yield Guarded(folder, watch.stdin)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            watch.stdin.close()
        watch.wait()


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def kill_group(pid: int) -> None:
    """End a process and all that it has started, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)
