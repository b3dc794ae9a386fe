"""One run of the user's command: how it ended, how long it took, what it printed."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.harness.errors import HarnessError
from torchlint.harness.guardian import Guarded, kill_group
from torchlint.harness.verify.project import Sandbox

_NUMBER = re.compile(r"[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    status: int | None
    """The exit status; None if the time was over."""

    seconds: float
    cpu_seconds: float | None
    """What the program and its processes computed, other programs aside; None where the system does not tell."""

    printed: str
    """Standard output."""

    errors: str
    """Standard error: warnings, logs, tracebacks."""

    @property
    def succeeded(self) -> bool:
        """Whether the program ended by itself with status 0."""
        return self.status == 0

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.status is None:
            return f"timed out after {self.seconds:.0f} s"
        if self.status < 0:
            return f"was killed by signal {-self.status}"
        return f"exit status {self.status}"

    def tail(self, lines: int = 12) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.output.rstrip().splitlines()[-lines:])

    @property
    def output(self) -> str:
        """Standard output, then standard error."""
        return "\n".join(text.rstrip() for text in (self.printed, self.errors) if text.strip())

    @property
    def said(self) -> str:
        """Standard output, or standard error of a program that prints nothing else."""
        return self.printed if self.printed.strip() else self.errors

    @property
    def words(self) -> str:
        """What it said with every number replaced, to compare what does not depend on time and rounding."""
        return _NUMBER.sub("#", self.said)


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one command in fresh copies of a project."""

    sandbox: Sandbox
    guarded: Guarded
    command: Sequence[str]
    environment: Mapping[str, str]
    timeout: float | None

    def run(self, texts: Mapping[Path, bytes]) -> Outcome:
        """Return the outcome of the command on the project with these files replaced.

        Raises:
            HarnessError: the command does not exist.
        """
        self.sandbox.lay_out(texts)
        logs = [self.guarded.folder / name for name in ("output", "errors")]
        arguments = [self.sandbox.inside(argument) for argument in self.command]
        with logs[0].open("wb") as output, logs[1].open("wb") as errors:
            start, computed = time.perf_counter(), _cpu_seconds()
            try:
                process = subprocess.Popen(
                    arguments,
                    cwd=self.sandbox.workdir,
                    env=self.sandbox.environment(self.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise HarnessError(f"cannot run {arguments[0]}: {error.strerror}") from error
            self.guarded.began(process.pid)
            try:
                status = self._wait(process)
                seconds = time.perf_counter() - start
            finally:
                kill_group(process.pid)
                process.wait()
                self.guarded.ended(process.pid)
        after = _cpu_seconds()
        cpu = after - computed if after is not None and computed is not None else None
        return Outcome(status, seconds, cpu, *(log.read_text(encoding="utf-8", errors="replace") for log in logs))

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(self.timeout)
        return None


def _cpu_seconds() -> float | None:
    """Return the processor time of all children that have ended."""
    try:
        import resource
    except ImportError:
        return None
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
