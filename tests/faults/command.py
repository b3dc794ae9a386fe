"""The command in a process of its own, with whatever streams, rights and limits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
SAFE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
FIXED = "import torch\n\nx = torch.zeros(3)\n"
LIMIT = 300
"""Seconds that no command may take."""

Stream = int | IO[Any]

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDE_AND_READ_SEARCH = (1, 2)
_libc = ctypes.CDLL(None)


def torchlint(
    *arguments: str | bytes,
    cwd: Path,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    prepare: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a folder and return what came of it; ``prepare`` is called in the new process."""
    command: Sequence[str | bytes] = [sys.executable, "-m", "torchlint", *arguments]
    path = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    return subprocess.run(
        command,
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        preexec_fn=prepare,
        env={**os.environ, **path, **(environment or {})},
        timeout=LIMIT,
        check=False,
    )


def obey_modes() -> None:
    """Give up the right of the super-user to read and write what nobody may; others do not have it."""
    if os.getuid() == 0:
        for capability in _OVERRIDE_AND_READ_SEARCH:
            _libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each Python file by its path within the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def strangers(folder: Path) -> list[str]:
    """Return the files that are no Python files, those of the cache left out."""
    files = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".py")
    return [str(path) for path in files if ".torchlint_cache" not in path.parts]
