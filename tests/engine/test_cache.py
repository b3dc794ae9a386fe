"""The cache under what can go wrong: corruption, forgery, clocks."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.conftest import (
    CLEAN,
    NAMES,
    ROOT,
    content,
    document,
    opened,
    planned,
    rewritten,
    run,
    shown,
)
from torchlint.engine.cache import results
from torchlint.engine.cache.codec import ForeignResultError, decode, encode
from torchlint.engine.cache.identity import plan_name, program
from torchlint.engine.plan import Plan, Task
from torchlint.engine.result import FileResult, Status
from torchlint.source import digest


def test_what_is_known_is_not_checked_again(tree: Path) -> None:
    cold, checked = run()
    assert checked == 12
    warm, checked = run()
    assert checked == 0
    assert shown(warm) == shown(cold)


def test_a_stamp_that_is_old_enough_spares_the_reading(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    monkeypatch.setattr(results.time, "time_ns", lambda: now() + 60_000_000_000)
    run()
    monkeypatch.setattr(results, "file_digest", lambda path: pytest.fail(f"{path} was read"))
    assert run()[1] == 0
    (tree / "found0.py").touch()
    monkeypatch.undo()
    monkeypatch.chdir(tree)
    assert run()[1] == 0, "the same bytes give the same result"


def test_a_young_stamp_is_not_trusted(tree: Path) -> None:
    """Until the granule of its time has passed, a file may change again and keep its stamp."""
    run()
    assert {entry[2] for entry in content(document(tree)).values()} == {""}
    plan = planned()
    task = next(task for task in plan.tasks if task.path == "found0.py")
    (tree / "found0.py").write_text(CLEAN)
    assert opened(plan).find(task) is None, "the stamp is the one of before, the content is not"


def test_another_size_time_or_number_is_another_stamp(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    monkeypatch.setattr(results.time, "time_ns", lambda: now() + 60_000_000_000)
    run()
    plan = planned()
    task = plan.tasks[0]
    monkeypatch.setattr(results, "file_digest", lambda path: "other")
    assert opened(plan).find(task) is not None
    for place in range(4):
        stamp = tuple(number + (index == place) for index, number in enumerate(task.stamp))
        assert opened(plan).find(Task(task.path, task.size, task.plan, stamp)) is None


def test_every_byte_matters(tree: Path) -> None:
    """Whatever byte is changed, and wherever the file ends, the results are those without a cache."""
    expected, _ = run()
    path = document(tree)
    whole = path.read_bytes()
    chance = random.Random(7)
    places = [*range(80), *chance.sample(range(80, len(whole)), 40), len(whole) - 1]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ chance.randrange(1, 256)]) + whole[place + 1 :])
        assert opened(planned()).find(planned().tasks[0]) is None, place
        path.write_bytes(whole[:place])
        assert opened(planned()).find(planned().tasks[0]) is None, place
    path.write_bytes(chance.randbytes(5000))
    found, checked = run()
    assert checked == 12
    assert shown(found) == shown(expected)
    assert opened(planned()).find(planned().tasks[0]) is not None, "it is rebuilt"


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 1000, b"[" * 100_000, b"{}", b"\xff\xfe", b"cos\nsystem\n(S'touch hacked'\ntR."],
    ids=["empty", "zeros", "deep", "bare", "bom", "pickle"],
)
def test_foreign_data_are_replaced(tree: Path, data: bytes) -> None:
    expected, _ = run()
    path = document(tree)
    name = path.stem.partition("-")[2]
    for bad in (data, f"torchlint cache {name} {digest(data)}\n".encode() + data):
        path.write_bytes(bad)
        (tree / "new.py").write_text(f"x = {len(bad)}\n")
        found, _ = run()
        assert [each for each in shown(found) if each[0] != "new.py"] == shown(expected)  # type: ignore[index]
        assert path.read_bytes() != bad
    assert not (tree / "hacked").exists()


def test_a_pipe_in_place_of_a_document_does_not_block(tree: Path) -> None:
    expected, _ = run()
    path = document(tree)
    path.unlink()
    os.mkfifo(path)
    assert shown(run()[0]) == shown(expected)


def _forgeries(entry: list[object]) -> list[object]:
    """Return entries that have the right checksum and the wrong shape or content."""
    plan, name, stamp, text = entry
    assert isinstance(text, str)
    result = json.loads(text)
    finding = result[1][0]

    def given(forged: object) -> list[object]:
        return [plan, name, stamp, json.dumps(forged)]

    def changed(place: int, value: object) -> list[object]:
        return given([result[0], [[*finding[:place], value, *finding[place + 1 :]]], *result[2:]])

    return [
        None,
        [],
        [plan, name, stamp],
        [plan, name, stamp, result],
        [plan, name, stamp, ""],
        [plan, name, stamp, "[" * 100_000],
        [plan, name, stamp, text[:-1]],
        given("failed"),
        given(None),
        given({"__class__": "os.system"}),
        given(result[:-1]),
        given(["checked", "x", *result[2:]]),
        given(["checked", [1], *result[2:]]),
        [[plan], name, stamp, text],
        changed(0, "TL999"),
        changed(1, "other-name"),
        changed(2, "loud"),
        changed(3, "clear the screen: \x1b[2J"),
        changed(3, 7),
        changed(5, [-1, 5]),
        changed(5, [0, True]),
        changed(5, [0, 1e9]),
        changed(5, [0, 2**70]),
        changed(6, [0, 0]),
        changed(9, [finding[9][0], [[[1_000_000, 1_000_001], "x"]], "safe", ""]),
        changed(9, [finding[9][0], finding[9][1], "always", ""]),
    ]


def test_a_forged_entry_is_refused_and_the_file_checked(tree: Path) -> None:
    expected, _ = run()
    path = document(tree)
    entries = content(path)
    for forged in _forgeries(entries["found0.py"]):
        rewritten(path, {**entries, "found0.py": forged})
        found, checked = run()
        assert checked == 1, forged
        assert shown(found) == shown(expected)


def test_entries_that_are_no_table_are_refused(tree: Path) -> None:
    expected, _ = run()
    for forged in ([], "x", 1, None, [["found0.py", []]]):
        rewritten(document(tree), forged)
        assert shown(run()[0]) == shown(expected)


def test_what_is_read_is_never_run() -> None:
    """Nothing in the cache imports what could make code of data."""
    for path in (ROOT / "torchlint" / "engine" / "cache").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [word for word in ("pickle", "marshal", "shelve", "eval(", "exec(", "import_module") if word in text]


def test_a_result_comes_back_as_it_was(tree: Path) -> None:
    for result in run()[0]:
        data = json.loads(json.dumps(encode(result)))
        assert shown([decode(data, result.path, NAMES)]) == shown([result])
    with pytest.raises(ForeignResultError):
        decode("failed", "x.py", NAMES)
    assert encode(FileResult("x.py", Status.NO_TORCH)) == "no-torch"


def test_a_cache_that_moved_with_its_project_is_of_use(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    moved = tree.parent / "elsewhere"
    shutil.copytree(tree, moved)
    shutil.rmtree(tree)
    monkeypatch.chdir(moved)
    assert run()[1] == 0


def test_fixing_takes_no_edit_from_the_cache(tree: Path) -> None:
    """A forged edit that passes for one of torchlint's is shown by `check`, and not applied by `fix`."""
    run()
    path = document(tree)
    forged = path.read_bytes().partition(b"\n")[2].decode().replace('],\\"\\"]]', '],\\"import os\\"]]')
    assert forged.count("import os") == 6
    rewritten(path, json.loads(forged))
    done = subprocess.run(
        [sys.executable, "-m", "torchlint", "fix", "--apply", "found0.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Applied 1 fix" in done.stderr
    assert (tree / "found0.py").read_text().strip() == "x = 0"


def test_the_name_of_a_plan_holds_all_that_a_result_depends_on(tree: Path) -> None:
    (plan,) = planned().plans
    (tree / "torchlint.toml").write_text("num-workers = 7\n")
    (other,) = planned().plans
    assert plan_name(plan) != plan_name(other)
    assert plan_name(Plan(plan.settings, frozenset(), plan.target)) != plan_name(plan)
    assert len(program()) == 32
