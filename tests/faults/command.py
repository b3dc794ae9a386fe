"""The command in a process of its own, with whatever streams, rights and limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
SAFE = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\nx = torch.zeros(3)\n"
FIXED = "import torch\n\nx = torch.zeros(3)\n"
NOBODY = 65534
"""A user without rights to other people's files."""

LIMIT = 120
"""Seconds that no command may take."""

Stream = int | IO[Any]


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


def become_nobody() -> None:
    """Give up all rights, where this process has any to give up."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def for_everybody(folder: Path) -> None:
    """Let everybody into a folder and those above it, so that only the rights within it count."""
    for each in (folder, *folder.parents):
        if each.owner() == Path.home().owner() and not each.stat().st_mode & 0o005:
            each.chmod(each.stat().st_mode | 0o055)
