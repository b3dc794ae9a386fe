"""A file is replaced whole, and nothing stays beside it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchlint import atomic
from torchlint.atomic import replace_file, temporary_name, write_output

WRITER = """
import sys
from torchlint.atomic import replace_file
path, sizes = sys.argv[1], (1000, 3_000_000)
print("ready", flush=True)
number = 0
while True:
    number += 1
    replace_file(path, (b"ab"[number % 2 : number % 2 + 1]) * sizes[number % 2])
"""


def test_the_content_is_the_new_one_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    for data in (b"x", b"y"):
        replace_file(str(path), data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["a.py"]


def test_what_a_killed_run_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    Path(temporary_name(str(path))).write_text("half")
    replace_file(str(path), b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_run_in_progress_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")

    def meanwhile() -> None:
        with pytest.raises(OSError, match="another run"):
            replace_file(str(path), b"other")

    replace_file(str(path), b"new", ready=meanwhile)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_temporary_file_taken_over_by_another_run_is_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    lock = atomic._lock

    def late(descriptor: int) -> None:
        os.unlink(temporary_name(str(path)))
        Path(temporary_name(str(path))).write_text("half of another run")
        lock(descriptor)

    monkeypatch.setattr(atomic, "_lock", late)
    with pytest.raises(OSError, match="another run"):
        replace_file(str(path), b"new")
    assert path.read_text() == "old"
    assert Path(temporary_name(str(path))).read_text() == "half of another run"


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    path, victim = tmp_path / "a.py", tmp_path / "victim"
    path.write_text("old")
    victim.write_text("mine")
    os.symlink(victim, temporary_name(str(path)))
    with pytest.raises(OSError, match="symbolic link"):
        replace_file(str(path), b"new")
    assert (path.read_text(), victim.read_text()) == ("old", "mine")


def test_names_of_any_length(tmp_path: Path) -> None:
    for name in ("a" * 250, "a" * 249 + "b", "ü" * 100):
        replace_file(str(tmp_path / name), name.encode())
        assert (tmp_path / name).read_bytes() == name.encode()


@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.1, 0.15, 0.2])
def test_killed_at_any_moment_it_is_the_old_or_the_new(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a" * 1000)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    assert path.read_bytes() in {b"a" * 1000, b"b" * 3_000_000}
    replace_file(str(path), b"done")
    assert os.listdir(tmp_path) == ["a.py"]


def test_output_replaces_a_file_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report"
    write_output(str(path), b"new")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    write_output(str(tmp_path / "link"), b"newer")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"newer", 0o640)
    assert sorted(os.listdir(tmp_path)) == ["link", "report"]


def test_output_into_a_folder_that_takes_no_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report"
    path.write_text("old")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(atomic, "replace_file", refuse)
    write_output(str(path), b"new")
    assert path.read_text() == "new"
