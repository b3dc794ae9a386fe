"""The parent's side of worker processes: start, ask, time out, end them with all that they have started."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from torchlint.harness.counters import Counters
from torchlint.harness.devices import Elapsed, Environment
from torchlint.harness.errors import HarnessError, ProgramError
from torchlint.harness.outputs import Leaf
from torchlint.harness.worker import PROGRAM, serve

_LOG_TAIL = 2000
_GOODBYE = 3.0
"""Seconds that a process may take to end by itself; what it was told to end in the middle of a step does not."""

_START = 300.0
"""Seconds that the first import of torch may take on a slow disk."""


class _Process(Protocol):
    pid: int | None
    exitcode: int | None

    def start(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...
    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Launcher:
    """How worker processes come to be, and with how many threads torch computes in them."""

    method: str
    threads: int

    def context(self) -> Any:
        """Return the multiprocessing context; a server that has imported torch makes a start cheap."""
        context = multiprocessing.get_context(self.method)
        if self.method == "forkserver":
            context.set_forkserver_preload(["torch", "torch._dynamo", "torchlint.harness.worker"])
        return context


class Worker:
    """One worker process. Close it, or use it as a context manager."""

    def __init__(self, folder: Path, launcher: Launcher) -> None:
        """Start a process whose program lies in the folder."""
        self._log = folder / "log"
        context = launcher.context()
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self._process: _Process = context.Process(target=serve, args=(theirs, str(self._log), launcher.threads))
        self._process.start()
        theirs.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, name: str, *arguments: Any, timeout: float) -> Any:
        """Return the worker's answer.

        Raises:
            ProgramError: the program raised, died, or did not answer in time.
            HarnessError: what was asked cannot be had on this machine.
        """
        self.tell(name, *arguments)
        return self.answer(timeout)

    def tell(self, name: str, *arguments: Any) -> None:
        """Ask without waiting: the answer is to be fetched before anything else is asked.

        Raises:
            ProgramError: the program died.
        """
        try:
            self._connection.send((name, arguments))
        except (ConnectionError, BrokenPipeError) as error:
            raise self._died() from error

    def answer(self, timeout: float) -> Any:
        """Return the answer to what was told last; it raises what `ask` does."""
        try:
            if not self._connection.poll(timeout):
                raise ProgramError(f"no answer within {timeout:.0f} s", self._tail())
            kind, answer = self._connection.recv()
        except (EOFError, ConnectionError, BrokenPipeError) as error:
            raise self._died() from error
        if kind == "refused":
            raise HarnessError(answer)
        if kind == "failed":
            message, details = answer
            raise ProgramError(message, details)
        return answer

    def close(self) -> None:
        """End the process and everything in its process group."""
        with contextlib.suppress(OSError):
            self._connection.close()
        self._process.join(_GOODBYE)
        _kill_group(self._process.pid)
        if self._process.is_alive():
            self._process.kill()
        self._process.join(5)

    def _died(self) -> ProgramError:
        self._process.join(5)
        return ProgramError(f"the process died (exit code {self._process.exitcode})", self._tail())

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_TAIL:] if self._log.exists() else ""


class Program(Worker):
    """A worker with a program. It is being set up when it is made, and ``ready`` waits for that."""

    def __init__(
        self,
        folder: Path,
        launcher: Launcher,
        text: str,
        device: str,
        timeout: float,
        cores: frozenset[int] = frozenset(),
    ) -> None:
        """Write the program to the folder and start to set it up; it keeps to the cores, if there are any."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{PROGRAM}.py").write_text(text, encoding="utf-8")
        super().__init__(folder, launcher)
        self._timeout = timeout
        self._is_ready = False
        try:
            self.tell("setup", str(folder), device, cores)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Program:
        return self

    def ready(self) -> Program:
        """Wait until the program has been set up, and return it.

        Raises:
            ProgramError: its ``setup`` failed.
        """
        self.answer(self._timeout)
        self._is_ready = True
        return self

    def outputs(self, steps: int) -> list[list[Leaf]]:
        """Return the outputs of the next steps."""
        found: list[list[Leaf]] = self.ask("outputs", steps, timeout=self._timeout)
        return found

    def warm(self, seconds: float, least: int) -> float:
        """Warm the program up and return about how long a step takes, in seconds."""
        return float(self.ask("warm", seconds, least, timeout=self._timeout))

    def block(self, steps: int) -> Elapsed:
        """Return how long a step takes in a block of so many."""
        elapsed: Elapsed = self.ask("block", steps, timeout=self._timeout)
        return elapsed

    def counters(self) -> Counters:
        """Return the counters of one step, after ``tell("count")``: two programs can be counted at the same time."""
        counters: Counters = self.answer(self._timeout)
        return counters

    def close(self) -> None:
        """Let the program close what it has started, then end the process; one that never got ready has nothing."""
        if self._is_ready:
            with contextlib.suppress(HarnessError, OSError):
                self.ask("close", timeout=2)
        super().close()


def survey(folder: Path, device: str, threads: int | None) -> tuple[Launcher, str, Environment]:
    """Return how to start workers, the resolved device, and the environment around it.

    Args:
        folder: for what the workers print.
        device: its name, or ``auto``.
        threads: of torch; None for as many as suit the device.

    Raises:
        HarnessError: torch is missing, or there is no such device.
    """
    method = "forkserver" if sys.platform.startswith("linux") else "spawn"
    with Worker(folder, Launcher(method, 1)) as worker:
        if not worker.ask("survives_fork", timeout=_START):
            method = "spawn"
    with Worker(folder, Launcher(method, 1)) as worker:
        resolved: str = worker.ask("resolve", device, timeout=_START)
    launcher = Launcher(method, _suitable_threads(resolved) if threads is None else threads)
    with Worker(folder, launcher) as worker:
        found: Environment = worker.ask("describe", resolved, timeout=_START)
    return launcher, resolved, found


def _suitable_threads(device: str) -> int:
    """Return all cores less the one that is left to whatever else the machine does; two where an accelerator computes.

    There, one thread asks for what is to be computed, and autograd asks from another one on the way back.
    """
    available = len(usable_cores()) or os.cpu_count() or 1
    return max(1, available - 1 if device == "cpu" else min(2, available))


def missing(folder: Path, launcher: Launcher, needs: Sequence[str], device: str) -> dict[str, str]:
    """Return for each need why the device does not meet it; empty where it does."""
    with Worker(folder, launcher) as worker:
        return {need: worker.ask("missing", need, device, timeout=_START) for need in needs}


def _kill_group(pid: int | None) -> None:
    if pid is None or not hasattr(os, "killpg"):
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def settle() -> None:
    """Wait until the threads of a program that has just worked have stopped spinning."""
    time.sleep(0.004)


def usable_cores() -> tuple[int, ...]:
    """Return the cores that this process may use and assign; none where the system does not let it choose."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_setaffinity") else ()
