"""The cache as its users see it: nothing differs but the time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CLEAN, FIXED, SAFE, Invoke
from torchlint.report.formats import FORMATS

ROOT = Path(__file__).parent.parent.parent
CACHE = ".torchlint_cache"
SOURCES = {
    "found.py": SAFE,
    "clean.py": CLEAN,
    "other.py": "x = 1\n",
    "silenced.py": "import torch\n\ntorch.autograd.set_detect_anomaly(True)  # torchlint: ignore[TL601] wanted\n",
    "unused.py": "import torch\n\nx = torch.zeros(3)  # torchlint: ignore[TL601]\n",
    "unknown.py": "import torch\n\nx = torch.zeros(3)  # torchlint: ignore[TL999]\n",
    "skipped.py": "# torchlint: skip-file\n" + SAFE,
    "generated.py": "# @generated\n" + SAFE,
    "broken.py": "import torch\nx = (\n",
    "weird.py": SAFE + "name = 'caf\u00e9 \u2603 \U0001f600'  # \u00e9\r\n",
    "bom.py": "\ufeff" + SAFE,
    "tests/test_found.py": SAFE,
}


@pytest.fixture
def tree(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a file of every kind."""
    monkeypatch.delenv("TORCHLINT_CACHE_DIR", raising=False)
    for name, text in SOURCES.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return project


def documents(folder: Path, kind: str = "results") -> list[Path]:
    """Return the documents of one kind in a cache."""
    return sorted(folder.glob(f"{kind}-*.json"))


def entries(folder: Path) -> dict[str, list[object]]:
    """Return what the only file of results holds."""
    (path,) = documents(folder)
    body: dict[str, list[object]] = json.loads(path.read_bytes().partition(b"\n")[2])
    return body


def in_process(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return what a run in a process of its own did."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("form", FORMATS)
def test_every_report_is_the_same_from_the_cache(tree: Path, invoke: Invoke, form: str) -> None:
    command = ("check", "--select", "ALL", "--output-format", form)
    plain = invoke(*command, "--no-cache")
    assert plain.code == 1
    assert not (tree / CACHE).exists()
    cold, warm = invoke(*command), invoke(*command)
    assert len(entries(tree / CACHE)) == len(SOURCES)
    assert cold == plain
    assert warm == plain


def test_where_a_command_is_run_changes_what_is_shown_and_not_what_is_known(tree: Path, invoke: Invoke) -> None:
    (tree / "torchlint.toml").write_text("")
    invoke("check", tree)
    from_root = invoke("check", "--output-format", "concise")
    assert "unknown.py:3" in from_root.err
    assert len(documents(tree / CACHE)) == 1
    for words in ((), (str(tree),)):
        command = ("check", *words, "--output-format", "concise")
        assert invoke(*command) == invoke(*command, "--no-cache")


def test_a_warm_run_imports_no_parser_and_starts_no_process(tree: Path) -> None:
    assert in_process(tree, "-m", "torchlint", "check").returncode == 1
    program = (
        "import sys\nfrom torchlint.cli import run\nrun(['check', '--jobs', '4'])\n"
        "heavy = {'libcst', 'rich', 'multiprocessing', 'torchlint.semantics.model', 'packaging'} & set(sys.modules)\n"
        "sys.exit('imported: ' + ' '.join(sorted(heavy)) if heavy else 0)"
    )
    done = in_process(tree, "-c", program)
    assert done.returncode == 0, done.stderr
    assert "TL601" in done.stdout


def test_a_changed_file_is_checked_anew(tree: Path, invoke: Invoke) -> None:
    invoke("check")
    (tree / "found.py").write_text(FIXED)
    (tree / "clean.py").write_text(SAFE)
    out = invoke("check", "--output-format", "concise").out
    assert "clean.py:3" in out
    assert "found.py" not in out


def test_a_file_changed_within_the_granule_of_its_time_is_checked_anew(tree: Path, invoke: Invoke) -> None:
    """What has the same size, times and number as before may still be another: git calls it racily clean."""
    path = tree / "found.py"
    before = path.stat()
    invoke("check")
    assert entries(tree / CACHE)["found.py"][2] == ""
    path.write_text("#" + SAFE[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "found.py" not in invoke("check", "--output-format", "concise").out


def test_settings_target_and_rules_are_in_the_key(tree: Path, invoke: Invoke) -> None:
    settings = tree / "torchlint.toml"
    for text in (
        'ignore = ["TL601"]\n',
        "",
        '[severity]\nTL601 = "error"\n',
        'target-torch = "2.3"\n',
        "lint-tests = true",
    ):
        settings.write_text(text)
        command = ("check", "--output-format", "json")
        assert invoke(*command) == invoke(*command, "--no-cache"), text


def test_errors_are_told_every_time(tree: Path, invoke: Invoke) -> None:
    (tree / "latin.py").write_bytes(b"import torch\nx = '\xe9'\n")
    first, second = invoke("check"), invoke("check")
    assert first == second
    assert first.code == 2
    assert "latin.py" in first.err
    assert "latin.py" not in entries(tree / CACHE)


def test_fix_finds_the_same_with_the_cache(tree: Path, invoke: Invoke) -> None:
    plain = invoke("fix", "--no-cache")
    invoke("check")
    assert invoke("fix") == plain
    assert invoke("fix", "--apply", "found.py").code == 0
    assert (tree / "found.py").read_text() == FIXED


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tree: Path, invoke: Invoke) -> None:
    plain = invoke("check", "--no-cache")
    (tree / CACHE).write_text("in the way")
    assert invoke("check") == plain
    assert (tree / CACHE).read_text() == "in the way"
    assert invoke("clean").out == "There is no cache.\n"


def test_a_foreign_folder_is_left_alone(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tree / "mine"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("notes")
    monkeypatch.setenv("TORCHLINT_CACHE_DIR", "mine")
    assert invoke("check").code == 1
    assert [path.name for path in foreign.iterdir()] == ["notes.txt"]
    assert invoke("clean").out == "There is no cache.\n"


def test_a_link_is_not_written_through(tree: Path, invoke: Invoke, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tree / CACHE).symlink_to(elsewhere)
    assert invoke("check").code == 1
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("where", ["setting", "variable"])
def test_the_folder_can_be_elsewhere(
    tree: Path, invoke: Invoke, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if where == "setting":
        (tree / "torchlint.toml").write_text('cache-dir = "../elsewhere/cache"\n')
    else:
        monkeypatch.setenv("TORCHLINT_CACHE_DIR", str(tmp_path / "elsewhere" / "cache"))
    plain = invoke("check", "--no-cache")
    assert invoke("check") == plain == invoke("check")
    assert not (tree / CACHE).exists()
    assert documents(tmp_path / "elsewhere" / "cache")
    invoke("clean")
    assert not (tmp_path / "elsewhere" / "cache").exists()


def test_the_folder_says_what_it_is_and_clean_removes_it(tree: Path, invoke: Invoke) -> None:
    invoke("check")
    assert (tree / CACHE / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (tree / CACHE / ".gitignore").read_text().splitlines()[-1] == "*"
    (tree / CACHE / "notes.txt").write_text("notes")
    assert "notes.txt" in invoke("clean").out
    assert (tree / CACHE / "notes.txt").exists()
    (tree / CACHE / "notes.txt").unlink()
    assert invoke("clean").out.startswith("Removed ")
    assert not (tree / CACHE).exists()
    assert invoke("clean").out == "There is no cache.\n"


def test_vanished_files_are_forgotten(tree: Path, invoke: Invoke) -> None:
    invoke("check")
    (tree / "found.py").unlink()
    (tree / "new.py").write_text(CLEAN)
    invoke("check", "new.py")
    assert set(entries(tree / CACHE)) == {*SOURCES, "new.py"} - {"found.py"}
