"""Sharing work among processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torchlint.engine.many import Work, batches, run_many


def double(number: int) -> int:
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


WORK: Work[int, int] = Work(double, size=lambda number: number, on_death=lambda number, code: -number)


def test_results_come_in_the_order_of_the_items() -> None:
    numbers = [5, 1, 9, 7, 3, 100, 2]
    assert run_many(WORK, numbers, jobs=1) == [2 * n for n in numbers]
    assert run_many(WORK, numbers, jobs=3) == [2 * n for n in numbers]


def test_a_worker_that_dies_costs_one_item() -> None:
    numbers = list(range(40))
    expected = [-13 if n == 13 else 2 * n for n in numbers]
    assert run_many(WORK, numbers, jobs=2) == expected


def test_every_result_is_told_once() -> None:
    told: list[int] = []
    run_many(WORK, [1, 2, 3, 4], jobs=2, on_result=told.append)
    assert sorted(told) == [2, 4, 6, 8]


@given(st.lists(st.integers(0, 10_000)), st.integers(1, 8))
def test_batches_hold_every_item_once_and_start_with_the_largest(sizes: list[int], workers: int) -> None:
    found = batches(sizes, workers)
    assert sorted(index for batch in found for index in batch) == list(range(len(sizes)))
    assert all(found)
    if sizes:
        assert sizes[found[0][0]] == max(sizes)


def test_an_interrupt_ends_the_pool_at_once(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\n"
        "from torchlint.engine.many import Work, run_many\n"
        "def sleep(seconds):\n"
        "    time.sleep(seconds)\n"
        "if __name__ == '__main__':\n"
        "    print('started', flush=True)\n"
        "    run_many(Work(sleep, size=int, on_death=print), [60, 60, 60], jobs=2)\n"
    )
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    process.stdout.close()
    assert time.monotonic() - start < 10
