"""The process of one program: loads it, runs its steps when told to, and answers with plain data."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from torchlint.harness.counters import Counters, count, uncounted
from torchlint.harness.devices import Elapsed, describe, import_torch, missing, resolve, stopwatch, synchronizer
from torchlint.harness.errors import HarnessError
from torchlint.harness.outputs import Leaf, flatten

PROGRAM = "torchlint_program"
"""The module name of every program, so that both variants are alike in all but their text."""

_SEED = 20


@dataclass(slots=True)
class _Session:
    """One program in its process, after ``setup``."""

    device: str
    module: ModuleType
    state: Any
    watch: Any = field(init=False)

    def __post_init__(self) -> None:
        self.watch = stopwatch(self.device)

    def step(self) -> Any:
        return self.module.step(self.state)

    def outputs(self, count: int) -> list[list[Leaf]]:
        return [list(flatten(self.step())) for _ in range(count)]

    def warm(self, seconds: float, least: int) -> float:
        """Run steps for so long, and so many unless they are slow; return the seconds of the quickest one."""
        began = time.perf_counter()
        times: list[float] = [self.watch(self.step, 1).host]
        while (spent := time.perf_counter() - began) < seconds or (len(times) < least and spent < 3 * seconds):
            times.append(self.watch(self.step, 1).host)
        gc.collect()
        return min(times)

    def block(self, count: int) -> Elapsed:
        elapsed: Elapsed = self.watch(self.step, count)
        return elapsed

    def count(self) -> Counters:
        self.step()
        if getattr(self.module, "CASE", {}).get("profiles"):
            return uncounted(self.state)
        return count(self.step, self.state, self.device, str(self.module.__file__))

    def close(self) -> None:
        """Let the program end what it has started; most have nothing to end."""
        if hasattr(self.module, "close"):
            self.module.close(self.state)


def serve(connection: Connection, log: str, threads: int) -> None:
    """Answer requests until the other end hangs up; what the program prints goes to the log."""
    _detach(log)
    _limit_threads(threads)
    _start_processes_as_usual()
    session: _Session | None = None
    while True:
        try:
            name, arguments = connection.recv()
        except (EOFError, OSError):
            break
        try:
            if name == "setup":
                session = _set_up(*arguments)
                answer: Any = None
            elif name in _QUESTIONS:
                answer = _QUESTIONS[name](*arguments)
            else:
                answer = getattr(session, name)(*arguments)
            connection.send(("done", answer))
        except HarnessError as error:
            connection.send(("refused", str(error)))
        except BaseException as error:  # whatever a program raises is a result
            message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
            connection.send(("failed", (message, traceback.format_exc())))
    connection.close()


def survives_fork() -> bool:
    """Return whether CUDA can be used in this process: not where it was used before the fork."""
    return not import_torch().cuda._is_in_bad_fork()


_QUESTIONS: Mapping[str, Callable[..., object]] = {
    "describe": describe,
    "missing": missing,
    "resolve": resolve,
    "survives_fork": survives_fork,
}


def _limit_threads(threads: int) -> None:
    if threads:
        with contextlib.suppress(HarnessError):
            import_torch().set_num_threads(threads)


def _set_up(folder: str, device: str, cores: frozenset[int]) -> _Session:
    if cores:
        os.sched_setaffinity(0, cores)
    torch = import_torch()
    gc.freeze()  # what torch consists of is not the program's garbage to look through
    sys.path.insert(0, folder)
    path = Path(folder) / f"{PROGRAM}.py"
    spec = importlib.util.spec_from_file_location(PROGRAM, path)
    if spec is None or spec.loader is None:
        raise HarnessError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PROGRAM] = module
    random.seed(_SEED)
    torch.manual_seed(_SEED)
    _seed_numpy()
    spec.loader.exec_module(module)
    session = _Session(device, module, module.setup(device))
    synchronizer(device)()
    return session


def _seed_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_SEED)


def _start_processes_as_usual() -> None:
    """Let the program's own processes (loader workers) start as in any program, not as this process was started."""
    multiprocessing.set_start_method(multiprocessing.get_all_start_methods()[0], force=True)


def _detach(log: str) -> None:
    """Leave the terminal: own process group, no output; Ctrl-C is the parent's to handle."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(sink, descriptor)
    os.close(sink)
