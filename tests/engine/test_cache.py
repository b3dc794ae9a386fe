"""The cache under what can go wrong: corruption, forgery, other runs at the same time, kills, clocks."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchlint.engine.cache import results
from torchlint.engine.cache.cards import rule_words
from torchlint.engine.cache.codec import ForeignResultError, decode, encode
from torchlint.engine.cache.folder import CacheFolder, cache_folder
from torchlint.engine.cache.identity import plan_name, program, run_name
from torchlint.engine.cache.results import ResultCache, check_with
from torchlint.engine.plan import Plan, Planned, Task, Worker, make_plan
from torchlint.engine.result import FileResult, Status
from torchlint.registry import rules
from torchlint.source import digest

ROOT = Path(__file__).parent.parent.parent
NAMES = {rule.code: rule.name for rule in rules()}
FOUND = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"
CLEAN = "import torch\n"
COMMAND = (sys.executable, "-m", "torchlint", "check", "--quiet", "--output-format", "json")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, the current folder."""
    monkeypatch.delenv("TORCHLINT_CACHE_DIR", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    for index in range(6):
        (folder / f"found{index}.py").write_text(FOUND + f"x = {index}\n")
        (folder / f"clean{index}.py").write_text(CLEAN + f"x = {index}\n")
    monkeypatch.chdir(folder)
    return folder


def planned() -> Planned:
    """Return what is to be done in the current folder."""
    return make_plan(["."], overrides={}, isolated=False, config=None, cached=True)


def opened(plan: Planned) -> ResultCache:
    """Return the cache as it is on the disk."""
    assert plan.cache is not None
    return ResultCache(plan.cache, run_name({}, isolated=False, config=None), plan.plans, plan.words)


def run() -> tuple[list[FileResult], int]:
    """Check the current folder and return the results, and how many files had to be checked."""
    plan = planned()
    checked: list[Task] = []

    def check(tasks: list[Task]) -> list[FileResult]:
        checked.extend(tasks)
        return [Worker(plan.plans).check(task) for task in tasks]

    return check_with(opened(plan), plan.tasks, check), len(checked)


def shown(found: list[FileResult]) -> list[object]:
    """Return what reports show of the results."""
    return [(each.path, each.status, each.diagnostics, each.suppressed, each.note, each.excerpts) for each in found]


def document(folder: Path, kind: str = "results") -> Path:
    """Return the document of a kind that was written last."""
    return max((folder / ".torchlint_cache").glob(f"{kind}-*.json"), key=os.path.getmtime)


def rewritten(path: Path, content: object) -> None:
    """Put other content into a document, with the right checksum: what a forger can do."""
    body = json.dumps(content).encode()
    name = path.stem.partition("-")[2]
    path.write_bytes(f"torchlint cache {name} {digest(body)}\n".encode() + body)


def content(path: Path) -> dict[str, list[object]]:
    """Return what a document holds."""
    body: dict[str, list[object]] = json.loads(path.read_bytes().partition(b"\n")[2])
    return body


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
@pytest.mark.parametrize("kind", ["results", "rules"])
def test_foreign_data_are_replaced(tree: Path, data: bytes, kind: str) -> None:
    expected, _ = run()
    path = document(tree, kind)
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
    plan, name, stamp, result = entry
    assert isinstance(result, list)
    finding = result[1][0]

    def changed(place: int, value: object) -> list[object]:
        return [plan, name, stamp, [result[0], [[*finding[:place], value, *finding[place + 1 :]]], *result[2:]]]

    return [
        None,
        [],
        [plan, name, stamp],
        [plan, name, stamp, "failed"],
        [plan, name, stamp, None],
        [plan, name, stamp, {"__class__": "os.system"}],
        [plan, name, stamp, result[:-1]],
        [plan, name, stamp, ["checked", "x", *result[2:]]],
        [plan, name, stamp, ["checked", [1], *result[2:]]],
        [[plan], name, stamp, result],
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
    forged = path.read_bytes().partition(b"\n")[2].decode().replace('],""]]', '],"import os"]]')
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


def test_rules_come_back_as_they_were(tree: Path) -> None:
    run()
    folder = cache_folder(str(tree), None)
    words = [
        (each.code, each.name, each.summary, each.documentation, each.default, each.in_tests)
        for each in rule_words(folder)
    ]
    assert words == [(r.code, r.name, r.summary, r.documentation, r.default, r.in_tests) for r in rules()]
    assert rule_words(folder) is not rules()


def test_the_name_of_a_plan_holds_all_that_a_result_depends_on(tree: Path) -> None:
    (plan,) = planned().plans
    (tree / "torchlint.toml").write_text("num-workers = 7\n")
    (other,) = planned().plans
    assert plan_name(plan) != plan_name(other)
    assert plan_name(Plan(plan.settings, frozenset(), plan.target)) != plan_name(plan)
    assert len(program()) == 32


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
