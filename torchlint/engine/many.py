"""Many items shared among processes, so that one that kills its process costs only itself."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

_SMALL_FORKED = 150_000
_SMALL_SPAWNED = 1_500_000
"""Bytes of work below which starting processes costs more than it saves."""

_BATCHES_PER_WORKER = 24
_GARBAGE = 200_000
"""Objects that may pile up before the paused collector runs."""


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


@contextmanager
def paused_collector() -> Iterator[Callable[[], None]]:
    """Pause the garbage collector, which would walk every syntax tree; give a function to call between items."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield _collect_if_due
    finally:
        if was_enabled:
            gc.enable()


def _collect_if_due() -> None:
    if gc.get_count()[0] > _GARBAGE:
        gc.collect()


@dataclass(frozen=True, slots=True)
class Work(Generic[Item, Result]):
    """What is to be done to each item, and what is said of one that kills its process."""

    function: Callable[[Item], Result]
    size: Callable[[Item], int]
    on_death: Callable[[Item, int | None], Result]


def run_many(
    work: Work[Item, Result],
    items: Sequence[Item],
    *,
    jobs: int | None = None,
    on_result: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Return the result of each item, in the order of the items.

    ``jobs`` None uses every core, but no process at all where the work is small.
    """
    wanted = jobs or available_cores()
    sizes = [work.size(item) for item in items]
    small = _SMALL_FORKED if _can_fork() else _SMALL_SPAWNED
    if wanted == 1 or len(items) < 2 or (jobs is None and sum(sizes) < small):
        return _run_here(work, items, on_result)
    return _Pool(work, items, sizes, min(wanted, len(items)), on_result).run()


def _run_here(work: Work[Item, Result], items: Sequence[Item], on_result: Callable[[Result], None]) -> list[Result]:
    results = []
    with paused_collector() as between:
        for item in items:
            results.append(work.function(item))
            on_result(results[-1])
            between()
    return results


def _can_fork() -> bool:
    """Return whether forking is safe: on Linux, from a process with a single thread."""
    return sys.platform == "linux" and threading.active_count() == 1


def batches(sizes: Sequence[int], workers: int) -> list[list[int]]:
    """Return the indices in batches of about equal size, the largest items first and alone."""
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    limit = max(1, sum(sizes) // (workers * _BATCHES_PER_WORKER))
    found: list[list[int]] = []
    room = 0
    for index in order:
        if room <= 0:
            found.append([])
            room = limit
        found[-1].append(index)
        room -= sizes[index] + 1
    return found


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    pending: list[int] = field(default_factory=list)


class _Pool(Generic[Item, Result]):
    """Workers that are handed one batch at a time and answer item by item."""

    def __init__(
        self,
        work: Work[Item, Result],
        items: Sequence[Item],
        sizes: Sequence[int],
        count: int,
        on_result: Callable[[Result], None],
    ) -> None:
        self._work = work
        self._items = items
        self._on_result = on_result
        self._results: dict[int, Result] = {}
        self._queue = batches(sizes, count)[::-1]
        self._count = count
        self._workers: list[_Worker] = []
        import multiprocessing  # only now: a single file needs no processes

        self._context: BaseContext = multiprocessing.get_context("fork" if _can_fork() else "spawn")

    def run(self) -> list[Result]:
        try:
            while len(self._results) < len(self._items):
                while self._queue and len(self._workers) < self._count:
                    self._start()
                self._listen()
        finally:
            self._stop()
        return [self._results[index] for index in range(len(self._items))]

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        inherited = [worker.connection for worker in self._workers] + [ours]
        forked = self._context.get_start_method() == "fork"
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(self._work.function, self._items, theirs, inherited if forked else []), daemon=True
        )
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        self._hand_out(worker)

    def _hand_out(self, worker: _Worker) -> None:
        if not self._queue:
            return
        worker.pending = self._queue.pop()
        try:
            worker.connection.send(worker.pending)
        except OSError:
            self._bury(worker)

    def _listen(self) -> None:
        from multiprocessing.connection import wait

        by_connection = {worker.connection: worker for worker in self._workers}
        for ready in wait(list(by_connection)):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                index, result = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            worker.pending.remove(index)
            self._take(index, result)
            if not worker.pending:
                self._hand_out(worker)

    def _take(self, index: int, result: Result) -> None:
        self._results[index] = result
        self._on_result(result)

    def _bury(self, worker: _Worker) -> None:
        """Blame the item that the dead worker was at, and queue the rest of its batch again."""
        self._workers.remove(worker)
        worker.process.join()
        worker.connection.close()
        if worker.pending:
            blamed, *rest = worker.pending
            self._take(blamed, self._work.on_death(self._items[blamed], worker.process.exitcode))
            if rest:
                self._queue.append(rest)

    def _stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()


def _serve(
    function: Callable[[Item], Result], items: Sequence[Item], connection: Connection, inherited: Sequence[Connection]
) -> None:
    """Answer batches of indices until the pipe closes; the parent alone reacts to an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    gc.freeze()
    with paused_collector() as between:
        try:
            while True:
                for index in connection.recv():
                    connection.send((index, function(items[index])))
                    between()
        except (EOFError, OSError):
            return
