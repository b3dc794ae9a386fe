"""Which files are found below paths, and that nothing ends the walk."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from torchlint.project.discovery import Discovery, discover, is_test_file
from torchlint.project.patterns import Patterns, ignored_selectors, with_slashes
from torchlint.settings import Settings, SettingsError, SettingsFinder


def tree(root: Path, *paths: str) -> None:
    """Make files from their paths, ``path=text`` with a text."""
    for item in paths:
        path, _, text = item.partition("=")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text.replace(";", "\n"))


def found(discovery: Discovery) -> list[str]:
    return [file.path for file in discovery.files]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def look(*paths: str, **options: object) -> list[str]:
    return found(discover(paths or (".",), SettingsFinder(options)))


def test_files_are_found_in_order_and_once(here: Path) -> None:
    tree(here, "b.py", "a/z.py", "a/c.pyi", "a/d.txt", "a-b.py", "e.pyc", "f.PY")
    assert look() == ["a-b.py", "a/c.pyi", "a/z.py", "b.py"]
    assert look(".", "a", "./b.py", str(here)) == look()
    assert look("a/") == ["a/c.pyi", "a/z.py"]
    assert look(str(here / "a")) == [str(here / "a/c.pyi"), str(here / "a/z.py")]


def test_a_file_has_size_settings_and_kind(here: Path) -> None:
    tree(here, "a.pyi=x = 1", "torchlint.toml=num-workers = 7", "tests/b.py")
    stub, test = discover(["."], SettingsFinder()).files
    assert (stub.size, stub.is_stub, stub.is_test, stub.settings.num_workers) == (5, True, False, 7)
    assert (test.size, test.is_stub, test.is_test) == (0, False, True)


def test_default_and_configured_excludes_prune(here: Path) -> None:
    tree(here, "a.py", ".venv/b.py", "x/site-packages/b.py", "vendor/b.py", "build/lib/b.py", "x/build/b.py", "c/d.py")
    assert look() == ["a.py", "build/lib/b.py", "c/d.py", "x/build/b.py"]
    assert look(extend_exclude=("/build", "c/*.py")) == ["a.py", "x/build/b.py"]
    assert look(extend_exclude=("build/",)) == ["a.py", "c/d.py"]
    assert look(exclude=("*.py", "!c/d.py")) == ["c/d.py"]
    assert look(extend_exclude=(str(here / "c"),)) == ["a.py", "build/lib/b.py", "x/build/b.py"]


def test_what_is_given_is_included_unless_forced_out(here: Path) -> None:
    tree(here, "vendor/b.py", "vendor/deep/c.py", "script", ".gitignore=*.py")
    assert look("vendor/b.py", "script") == ["script", "vendor/b.py"]
    assert look("vendor/b.py", "script", force_exclude=True) == ["script"]
    assert look("vendor/deep", force_exclude=True) == []
    assert discover(["vendor/b.py"], SettingsFinder({"force_exclude": True})).excluded == ("vendor/b.py",)
    (here / ".gitignore").unlink()
    assert look("vendor") == ["vendor/b.py", "vendor/deep/c.py"]


def test_gitignore_files_nest_and_negate(here: Path) -> None:
    tree(
        here,
        ".gitignore=*.tmp.py;/top.py;out/;!out/kept.py;data/*;!data/keep/;# comment;;\\#x.py",
        "top.py",
        "sub/top.py",
        "a.tmp.py",
        "out/kept.py",
        "sub/out/x.py",
        "data/a.py",
        "data/keep/b.py",
        "sub/.gitignore=!special.tmp.py;local.py",
        "sub/special.tmp.py",
        "sub/local.py",
        "local.py",
        "#x.py",
    )
    assert look() == ["data/keep/b.py", "local.py", "sub/special.tmp.py", "sub/top.py"]
    assert "a.tmp.py" in look(respect_gitignore=False)


def test_the_whole_repository_has_a_say_in_a_part_of_it(here: Path) -> None:
    tree(here, ".git/info/exclude=secret.py", ".gitignore=*.gen.py;/a/b/c.py", "a/.gitignore=d.py")
    tree(here, "a/b/c.py", "a/b/d.py", "a/b/e.gen.py", "a/b/f.py", "a/b/secret.py")
    assert look("a/b") == ["a/b/f.py"]
    assert look("a") == ["a/b/f.py"]


def test_an_ignored_folder_that_is_given_is_looked_into(here: Path) -> None:
    tree(here, ".git/HEAD", ".gitignore=build/;*.gen.py", "build/a.py", "build/deep/b.py")
    assert look() == []
    assert look("build") == ["build/a.py", "build/deep/b.py"]
    assert look("build/deep") == ["build/deep/b.py"]


def test_settings_of_excluded_folders_are_not_read(here: Path) -> None:
    tree(here, "a.py", "vendor/torchlint.toml=nonsense = 1", "vendor/b.py")
    assert look() == ["a.py"]
    with pytest.raises(SettingsError, match="nonsense"):
        look("vendor")


def test_nested_settings_bring_their_own_excludes(here: Path) -> None:
    tree(here, "torchlint.toml=extend-exclude = ['x.py']", "x.py", "sub/x.py", "own/x.py", "own/y.py")
    tree(here, "own/torchlint.toml=extend-exclude = ['y.py']")
    assert look() == ["own/x.py"]


def test_links_do_no_harm(here: Path) -> None:
    tree(here, "a/real.py", "z/other.py")
    (here / "a/loop").symlink_to("..")
    (here / "self").symlink_to("self")
    (here / "a/again.py").symlink_to("real.py")
    (here / "a/zz.py").symlink_to("../z/other.py")
    (here / "broken.py").symlink_to("nowhere.py")
    assert look() == ["a/real.py", "z/other.py"]
    assert look("a") == ["a/real.py", "a/zz.py"]
    (here / "link").symlink_to("a")
    assert look("link") == ["link/real.py", "link/zz.py"]
    assert look("a", "link") == ["a/real.py", "a/zz.py"]


def test_what_cannot_be_reached_is_told_and_the_rest_goes_on(here: Path) -> None:
    tree(here, "a.py", "b/c.py")
    discovery = discover(["nowhere", "a.py", "a.py/x", "a\0b", "b"], SettingsFinder())
    assert found(discovery) == ["a.py", "b/c.py"]
    reasons = {item.path: item.reason for item in discovery.unreachable}
    assert reasons["nowhere"] == "no such file or directory"
    assert set(reasons) == {"nowhere", "a.py/x", "a\0b"}


def test_an_unreadable_folder_is_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(here, "a/b.py", "c.py")
    real = os.scandir

    def locked(path: str) -> object:
        if path == "a":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", locked)
    discovery = discover(["."], SettingsFinder())
    assert found(discovery) == ["c.py"]
    assert [(item.path, item.reason) for item in discovery.unreachable] == [("a", "permission denied")]


def test_pipes_and_folders_with_python_names_are_no_files(here: Path) -> None:
    tree(here, "dir.py/a.py")
    if hasattr(os, "mkfifo"):
        os.mkfifo(here / "pipe.py")
    assert look() == ["dir.py/a.py"]


def test_names_that_are_not_unicode_survive(here: Path) -> None:
    if sys.platform != "linux":
        return
    name = b"caf\xe9.py"
    with open(os.fsencode(here) + b"/" + name, "w", encoding="utf-8"):
        pass
    tree(here, ".gitignore=*.txt", "torchlint.toml=extend-exclude = ['x*']")
    (path,) = look()
    assert os.fsencode(path) == name


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/a.py", True),
        ("pkg/tests/deep/a.py", True),
        ("pkg/testing_utils/a.py", True),
        ("test_a.py", True),
        ("a_test.py", True),
        ("pkg/conftest.py", True),
        ("tests.py", False),
        ("testing/a.py", False),
        ("contest.py", False),
        ("latest/a.py", False),
    ],
)
def test_tests_are_known_by_their_names(path: str, is_test: bool) -> None:
    assert is_test_file(path) is is_test


def test_a_project_inside_of_a_folder_called_tests_is_not_all_tests(tmp_path: Path) -> None:
    tree(tmp_path, "tests/project/torchlint.toml", "tests/project/a.py")
    (file,) = discover([str(tmp_path / "tests/project")], SettingsFinder()).files
    assert not file.is_test


def test_selectors_are_ignored_by_file(here: Path) -> None:
    table = {"tools/**": ("TL1",), "*_demo.py": ("TL2", "TL3"), "!src/**": ("TL9",), "a.py": ("TL4",)}
    settings = Settings(per_file_ignores=table, root=str(here))
    assert ignored_selectors(settings, "tools/x/y.py") == ("TL1", "TL9")
    assert ignored_selectors(settings, "src/b_demo.py") == ("TL2", "TL3")
    assert ignored_selectors(settings, str(here / "src/a.py")) == ("TL4",)
    assert ignored_selectors(settings, "src/b.py") == ()


def test_patterns_do_not_reach_out_of_their_root(tmp_path: Path) -> None:
    patterns = Patterns(["*.py", "name"], str(tmp_path / "root"))
    assert not patterns.match(str(tmp_path / "other/a.py"))
    assert patterns.match(str(tmp_path / "root/a.py"))


def test_many_entries_are_walked_quickly(here: Path) -> None:
    for number in range(40):
        folder = here / f"d{number}"
        folder.mkdir()
        for item in range(50):
            (folder / f"{item}.jpg").touch()
        (folder / "a.py").touch()
    tree(here, ".git/HEAD", ".gitignore=" + ";".join(f"*.x{n}" for n in range(100)))
    start = time.perf_counter()
    assert len(look()) == 40
    assert time.perf_counter() - start < 1


def test_the_separators_of_windows_are_slashes_in_patterns() -> None:
    assert with_slashes("src\\old\\*.py", "\\") == "src/old/*.py"
    assert with_slashes("src/old\\#1.py", "/") == "src/old\\#1.py"


def test_only_names_match_on_another_drive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(path: str, start: str) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    patterns = Patterns(["vendor", "*.py", "/deep"], str(tmp_path))
    monkeypatch.setattr("os.path.relpath", refuse)
    assert patterns.match("/other/vendor/a.txt")
    assert not patterns.match("/other/a.py")
    assert not patterns.match_entry("/other/deep", "deep", is_folder=True)
