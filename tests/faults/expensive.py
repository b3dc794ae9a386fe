"""The faults that take long to make: a disk that is really full, files and folders of great size, a hundred kills."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.faults import kills
from tests.faults.command import FIXED, ROOT, SAFE, contents, strangers, torchlint
from tests.faults.faults import Fault, agree, files, lines

_DISK = 512 << 10
_ENTRIES = 100_000
_HUGE = 100_000_000


class NotRunError(Exception):
    """This machine cannot make the fault; the message says why."""


def full_disk(folder: Path) -> str:
    """Fix a tree on a file system of its own that has no room left.

    Raises:
        NotRunError: this machine lets nobody mount one.
    """
    mount = f'mount -t tmpfs -o size={_DISK} none "$1" && exec "$2" -m tests.faults.expensive "$1"'
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(folder), sys.executable]
    if shutil.which("unshare") is None:
        raise NotRunError("there is no `unshare` here")
    done = subprocess.run(own, capture_output=True, text=True, cwd=ROOT, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        raise NotRunError(done.stderr.strip().splitlines()[-1])
    agree((done.returncode, done.stderr), (0, ""))
    return done.stdout.strip()


def fill(folder: Path) -> str:
    """Fill the disk that a folder is on, fix what is there, and say what became of it."""
    kills.make_tree(folder / "tree", copies=1)
    tree = folder / "tree"
    old = contents(tree)
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"\0" * 1024)
        except OSError:
            filler.truncate(filler.tell() - 4096)
    done = torchlint("fix", "--apply", "--unsafe-fixes", "--no-cache", "--isolated", ".", cwd=tree)
    refused = [line for line in lines(done.stderr) if line.endswith("not written: No space left on device")]
    agree((done.returncode, bool(refused)), (2, True))
    between = contents(tree)
    agree((sorted(between), strangers(tree)), (sorted(old), []))
    (folder / "filler").unlink()
    agree(torchlint("fix", "--apply", "--unsafe-fixes", "--isolated", ".", cwd=tree).returncode in (0, 1), True)
    new = contents(tree)
    agree([name for name, data in between.items() if data not in (old[name], new[name])], [])
    return f"{len(refused)} of {len(old)} files were refused and stay as they were; none is cut off, nothing is left"


def huge_files(folder: Path) -> str:
    """Give it a program and a notebook of 100 MB each, in a tree and by name."""
    files(folder, "a.py")
    with open(folder / "huge.py", "w") as file:
        file.write(SAFE + "x = torch.zeros(3).cuda()\n" * (_HUGE // 26))
    with open(folder / "huge.ipynb", "w") as file:
        file.write('{"cells": [], "metadata": {"text": "' + "x" * _HUGE + '"}, "nbformat": 4, "nbformat_minor": 5}')
    seconds = 0.0
    for named in ((".",), ("huge.py", "a.py", "huge.ipynb")):
        start = time.monotonic()
        done = torchlint("check", *named, cwd=folder)
        seconds = max(seconds, time.monotonic() - start)
        agree((done.returncode, lines(done.stderr)), (2, ["error: huge.ipynb: it is larger than 50 MB"]))
        agree(b"larger than 2 MB" in done.stdout, True)
    agree(torchlint("fix", "--apply", "huge.py", "a.py", cwd=folder).returncode, 0)
    agree((folder / "a.py").read_text(), FIXED)
    return f"passed over and counted, or named, in {seconds:.1f} s"


def many_entries(folder: Path) -> str:
    """Give it a folder of 100,000 files, one of which has a finding."""
    for number in range(_ENTRIES):
        (folder / f"file_{number}.py").write_bytes(b"x = 1\n")
    files(folder, "found.py")
    seconds = []
    for _ in range(2):
        start = time.monotonic()
        done = torchlint("check", "--output-format", "concise", ".", cwd=folder)
        seconds.append(time.monotonic() - start)
        agree((done.returncode, done.stderr), (1, b""))
        agree(done.stdout.startswith(b"found.py:3:1: TL601"), True)
    return f"checked in {seconds[0]:.0f} s, again in {seconds[1]:.0f} s"


def hundred_kills(folder: Path) -> str:
    """Kill ``fix --apply`` a hundred times."""
    agree(kills.main(["--kills", "100"]), kills.OK)
    return "each of the files is its old or its new self; nothing is left after the next run"


EXPENSIVE: dict[str, Fault] = {
    "a disk without room": full_disk,
    "files of 100 MB": huge_files,
    "a folder of 100,000 files": many_entries,
    "100 kills while files are written": hundred_kills,
}

if __name__ == "__main__":
    os.chdir(ROOT)
    print(fill(Path(sys.argv[1])))
