"""The cache under other runs at the same time, kills, and folders that are in the way."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.engine.conftest import (
    CLEAN,
    COMMAND,
    ROOT,
    content,
    document,
    opened,
    planned,
    run,
)
from torchlint.engine.cache.folder import CacheFolder, cache_folder
from torchlint.engine.worker import Worker
from torchlint.source import digest


def test_old_documents_are_dropped(tree: Path) -> None:
    folder = cache_folder(str(tree), None)
    assert folder is not None
    for index in range(20):
        assert folder.write("results", f"{index:032x}", {})
        path = tree / ".torchlint_cache" / f"results-{index:032x}.json"
        if path.exists():
            os.utime(path, (index, index))
    left = sorted(path.name for path in (tree / ".torchlint_cache").glob("results-*"))
    assert len(left) == 16
    assert left[-1].endswith("13.json")


def test_strays_of_killed_runs_are_removed(tree: Path) -> None:
    run()
    stray = tree / ".torchlint_cache" / ".results-x.json.0123456789abcdef.tmp"
    stray.write_text("half")
    os.utime(stray, (1, 1))
    (tree / "new.py").write_text(CLEAN)
    run()
    assert not stray.exists()


def test_a_folder_half_made_is_completed(tree: Path) -> None:
    (tree / ".torchlint_cache").mkdir()
    (tree / ".torchlint_cache" / "CACHEDIR.TAG").write_text("")
    run()
    assert run()[1] == 0


def _started(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_runs_at_the_same_time_agree(tree: Path) -> None:
    expected = subprocess.run(
        [*COMMAND, "--no-cache"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "TL601" in expected
    for _ in range(2):
        outputs = [process.communicate()[0] for process in [_started(tree) for _ in range(4)]]
        assert outputs == [expected] * 4
    assert len(content(document(tree))) == 12


def test_a_kill_at_any_moment_of_a_run_leaves_no_trace(tree: Path) -> None:
    chance = random.Random(3)
    start = time.perf_counter()
    expected = _started(tree).communicate()[0]
    lasts = time.perf_counter() - start
    path = document(tree)
    for attempt in range(20):
        (tree / "clean0.py").write_text(CLEAN + f"x = {attempt}\n")
        if attempt % 5 == 0:
            path.unlink(missing_ok=True)
        process = _started(tree)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, lasts))
        process.kill()
        process.communicate()
        if path.exists():
            first, _, body = path.read_bytes().partition(b"\n")
            assert first.split()[3].decode() == digest(body)
    (tree / "clean0.py").write_text(CLEAN + "x = 0\n")
    assert _started(tree).communicate()[0] == expected
    assert len(content(document(tree))) == 12


def test_a_kill_while_writing_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Writers that do nothing else are killed 48 times: what is read is whole, and strays do not pile up."""
    folder, name = CacheFolder(str(tmp_path / "cache")), "0" * 32
    program = (
        "import sys\nfrom torchlint.engine.cache.folder import CacheFolder\n"
        "for number in range(10**9):\n"
        "    CacheFolder(sys.argv[1]).write('results', '0' * 32, [number] * 200_000)\n"
        "    print(number, flush=True)"
    )
    chance = random.Random(5)
    for _ in range(12):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", program, folder.path]
        writers = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) for _ in range(4)]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.03))
        for writer in writers:
            writer.kill()
            writer.communicate()
        data = folder.read("results", name)
        assert len(data) == 200_000
        assert len(set(data)) == 1
    strays = list((tmp_path / "cache").glob(".*.tmp"))
    assert len(strays) <= 48
    for stray in strays:
        os.utime(stray, (1, 1))
    assert folder.write("results", name, [])
    assert not list((tmp_path / "cache").glob(".*.tmp"))


def test_what_another_run_wrote_meanwhile_is_kept(tree: Path) -> None:
    plan = planned()
    first, second = opened(plan), opened(plan)
    half = len(plan.tasks) // 2
    for cache, tasks in ((first, plan.tasks[:half]), (second, plan.tasks[half:])):
        for task in tasks:
            cache.add(task, Worker(plan.plans).check(task))
    first.save()
    second.save()
    assert run()[1] == 0


def test_a_read_only_folder_is_read(tree: Path) -> None:
    """As far as this user can be kept from writing: the folder vanishes between reading and writing."""
    run()
    cache = opened(planned())
    folder = CacheFolder(str(tree / ".torchlint_cache"))
    assert folder.remove() == ()
    (tree / ".torchlint_cache").write_text("in the way")
    cache.add(planned().tasks[0], Worker(planned().plans).check(planned().tasks[0]))
    cache.save()
    assert (tree / ".torchlint_cache").read_text() == "in the way"
