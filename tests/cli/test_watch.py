"""``torchlint check --watch`` as a process, while files change."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import FIXED, SAFE, Invoke
from tests.terminal import environment

READY = "Watching {} for changes; Ctrl-C stops.\n"
PATIENCE = 60


class Watch:
    """A running ``check --watch``, whose output can be waited for."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._path = folder.parent / "output.txt"
        self._seen = 0
        command = [sys.executable, "-m", "torchlint", "check", "--watch", "--output-format", "concise", *options]
        with self._path.open("wb") as file:
            self.process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=file, stderr=file)

    def until(self, text: str) -> str:
        """Return what was written since the last time up to this text."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            written = self.output()[self._seen :]
            if text in written:
                length = written.index(text) + len(text)
                self._seen += length
                return written[:length]
            time.sleep(0.05)
        raise TimeoutError(f"waited for {text!r}, got {written!r}")

    def output(self) -> str:
        """Return all that was written."""
        return self._path.read_text(encoding="utf-8")

    def interrupt(self) -> int:
        """Interrupt the process and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[Watch]:
    """Run ``check --watch`` in a folder for the time of the block."""
    watch = Watch(folder, *options)
    try:
        yield watch
    finally:
        watch.process.kill()
        watch.process.wait()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_files_that_change_come_and_go_are_checked_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    (project / "a.py").write_text(SAFE)
    with watching(project) as watch:
        assert "a.py:3:1: TL601" in watch.until(READY.format("1 file"))
        (project / "a.py").write_text(FIXED)
        shown = watch.until(READY.format("1 file"))
        assert "changed: a.py\n" in shown
        assert "TL601" not in shown
        (project / "new.py").write_text(SAFE)
        shown = watch.until(READY.format("2 files"))
        assert "new: new.py\n" in shown
        assert "new.py:3:1: TL601" in shown
        (project / "new.py").unlink()
        assert "gone: new.py\n" in watch.until(READY.format("1 file"))
        assert watch.interrupt() == 130
        assert "Traceback" not in watch.output()


def test_a_file_that_is_replaced_by_a_rename_is_checked_again(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    with watching(project) as watch:
        watch.until(READY.format("1 file"))
        (project / ".a.py.swp").write_text(SAFE + SAFE)
        os.replace(project / ".a.py.swp", project / "a.py")
        assert "a.py:7:1: TL601" in watch.until(READY.format("1 file"))


def test_settings_are_read_again_and_mistakes_in_them_waited_out(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    (project / "torchlint.toml").write_text("")
    with watching(project) as watch:
        watch.until(READY.format("1 file"))
        (project / "torchlint.toml").write_text("ignor = []")
        assert "torchlint.toml: unknown key `ignor`" in watch.until("waiting for a change, Ctrl-C stops\n")
        (project / "torchlint.toml").write_text('ignore = ["TL601"]')
        shown = watch.until(READY.format("1 file"))
        assert "the settings changed\n" in shown
        assert "TL601" not in shown


def test_a_baseline_is_read_again(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    invoke("check", "--write-baseline", "known.json", ".")
    known = (project / "known.json").read_text()
    (project / "a.py").write_text(FIXED)
    invoke("check", "--write-baseline", "known.json", ".")
    (project / "a.py").write_text(SAFE)
    with watching(project, "--baseline", "known.json") as watch:
        assert "TL601" in watch.until(READY.format("1 file"))
        (project / "known.json").write_text(known)
        assert "TL601" not in watch.until(READY.format("1 file"))


def test_what_is_no_business_of_the_check_changes_nothing(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    with watching(project) as watch:
        watch.until(READY.format("1 file"))
        (project / "notes.txt").write_text("x")
        (project / "checkpoints").mkdir()
        time.sleep(1.5)
        assert watch.interrupt() == 130
        assert watch.output().count("Ctrl-C stops.") == 1


def test_many_changes_at_once_are_one_run(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    with watching(project) as watch:
        watch.until(READY.format("1 file"))
        for index in range(8):
            (project / f"b{index}.py").write_text(SAFE)
            time.sleep(0.02)
        assert "new: b0.py, b1.py, b2.py and 5 more files\n" in watch.until(READY.format("9 files"))
        assert watch.interrupt() == 130
        assert watch.output().count("Ctrl-C stops.") == 2


def test_the_screen_is_cleared_on_a_terminal_only(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    with watching(project) as watch:
        assert "\x1b[" not in watch.until(READY.format("1 file"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "torchlint", "check", "--watch"]
    process = subprocess.Popen(command, cwd=project, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    shown = b""
    while b"Ctrl-C stops." not in shown:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert shown.startswith(b"\x1b[2J")
    os.close(ours)
    os.close(theirs)


def test_it_ends_when_nobody_reads(project: Path) -> None:
    (project / "a.py").write_text(SAFE)
    command = [sys.executable, "-m", "torchlint", "check", "--watch"]
    process = subprocess.Popen(
        command, cwd=project, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    process.stdout.close()
    assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "options", [["-"], ["--fix"], ["--diff"], ["--add-ignore"], ["--show-files"], ["--write-baseline", "b.json"]]
)
def test_it_only_checks(project: Path, invoke: Invoke, options: list[str]) -> None:
    outcome = invoke("check", "--watch", *options)
    assert outcome.code == 2
    assert outcome.err.startswith("error: --watch")


def test_what_is_wrong_from_the_start_ends_it(project: Path, invoke: Invoke) -> None:
    (project / "a.py").write_text(SAFE)
    assert invoke("check", "--watch", "--select", "TL999").code == 2
    assert invoke("check", "--watch", "--baseline", "missing.json").code == 2
