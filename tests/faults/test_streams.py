"""Standard streams that are closed, full or no longer read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.command import SAFE, torchlint

FULL = "error: cannot write to standard output: No space left on device\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(SAFE)
    return tmp_path


COMMANDS = {
    "check": ("check", "a.py"),
    "json": ("check", "--output-format", "json", "a.py"),
    "fix": ("fix", "a.py"),
    "rules": ("rules",),
    "page": ("rules", "TL601"),
    "version": ("--version",),
    "help": ("--help",),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_full_standard_output_is_one_line_and_2(folder: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = torchlint(*arguments, cwd=folder, stdout=full)
    assert (done.returncode, done.stderr.decode()) == (2, FULL)


def test_a_full_standard_error_costs_the_words_only(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = torchlint("check", "--output-format", "concise", "a.py", "missing.py", cwd=folder, stderr=full)
        assert done.returncode == 2
        assert done.stdout.startswith(b"a.py:3:1: TL601")
        done = torchlint("check", "a.py", cwd=folder, stdout=full, stderr=full)
        assert done.returncode == 2


def test_closed_streams_are_no_error(folder: Path) -> None:
    assert torchlint("check", "a.py", cwd=folder, prepare=lambda: os.close(1)).returncode == 1
    done = torchlint("fix", "a.py", cwd=folder, prepare=lambda: os.close(2))
    assert done.returncode == 1
    assert done.stdout.startswith(b"--- a.py")
    done = torchlint("check", "-", cwd=folder, prepare=lambda: os.close(0))
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: there is nothing to read for `-`: standard input is closed")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_pipe_that_nobody_reads_ends_quietly(folder: Path, arguments: tuple[str, ...], stream: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = torchlint(*arguments, cwd=folder, **{stream: writing})  # type: ignore[arg-type]
    finally:
        os.close(writing)
    assert done.returncode in (0, 1)
    assert b"rror" not in (done.stderr or b"")
    assert b"Traceback" not in (done.stdout or b"")


def test_standard_input_that_is_no_text(folder: Path) -> None:
    (folder / "bytes").write_bytes(b"import torch\nx = '\xff'\n")
    with open(folder / "bytes", "rb") as data:
        done = torchlint("check", "-", cwd=folder, stdin=data)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: -: cannot decode: byte 0xff in line 2 is not valid UTF-8; save the file as")


def test_only_the_first_line_is_read(folder: Path) -> None:
    (folder / "a.py").write_text(SAFE + SAFE.splitlines()[2].join(["", "\n"]) * 300)
    done = subprocess.run(
        ["sh", "-c", '"$0" -m torchlint check a.py 2>errors | head -1', sys.executable],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    assert done.stdout.count(b"\n") == 1
    assert (folder / "errors").read_bytes() == b""
