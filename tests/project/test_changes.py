"""What changed since a revision, asked of real repositories; nothing that they bring along is run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.repository import commit, git
from torchlint.project.changes import Changes, ChangesError, changes_since, parse_diff
from torchlint.source import source_from_text


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit with ``a.py`` and ``b.py`` of ten rows each."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("a.py", "b.py"):
        (folder / name).write_text("".join(f"{name[0]}{row} = {row}\n" for row in range(1, 11)))
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    return folder


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace lines of a file."""
    text = path.read_text()
    for before, after in changes:
        text = text.replace(before, after)
    path.write_text(text)


def test_rows_that_differ_and_gaps_count(repository: Path) -> None:
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"), ("a6 = 6\n", ""), ("a9 = 9\n", "a9 = 9\nx\ny\n"))
    assert changes_since("HEAD", ["a.py", "b.py"]) == {"a.py": Changes(((3, 3), (9, 10)), (5,))}


def test_committed_staged_and_unstaged_changes_count(repository: Path) -> None:
    edit(repository / "a.py", ("a1 = 1\n", "a1 = 0\n"))
    commit(repository)
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    git(repository, "add", "a.py")
    edit(repository / "a.py", ("a5 = 5\n", "a5 = 0\n"))
    assert changes_since("HEAD~1", ["a.py"])["a.py"].rows == ((1, 1), (3, 3), (5, 5))
    assert changes_since("HEAD", ["a.py"])["a.py"].rows == ((3, 3), (5, 5))


def test_untracked_and_ignored_files_are_new(repository: Path) -> None:
    (repository / ".gitignore").write_text("ignored.py\n")
    for name in ("new.py", "ignored.py"):
        (repository / name).write_text("x = 1\n")
    found = changes_since("HEAD", ["a.py", "new.py", "ignored.py"])
    assert found == {"new.py": Changes(everything=True), "ignored.py": Changes(everything=True)}


@pytest.mark.parametrize(
    "name", ["c.py", "with blank.py", "caf\N{LATIN SMALL LETTER E WITH ACUTE}.py", 'qu"o\\te\t.py']
)
def test_renames_are_followed_whatever_the_name(repository: Path, name: str) -> None:
    git(repository, "mv", "a.py", name)
    assert changes_since("HEAD", [name]) == {}
    edit(repository / name, ("a3 = 3\n", "a3 = 0\n"))
    assert changes_since("HEAD", [name]) == {name: Changes(((3, 3),))}


def test_paths_are_those_that_were_asked_for(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "sub").mkdir()
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    monkeypatch.chdir(repository / "sub")
    absolute = str(repository / "a.py")
    assert set(changes_since("HEAD", ["../a.py", absolute])) == {"../a.py", absolute}
    monkeypatch.chdir(repository.parent)
    assert set(changes_since("HEAD", ["repository/a.py", "repository/b.py"])) == {"repository/a.py"}


def test_a_file_without_a_suffix_is_compared_too(repository: Path) -> None:
    (repository / "train").write_text("x = 1\n")
    commit(repository)
    assert changes_since("HEAD", ["train"]) == {}
    (repository / "train").write_text("x = 2\n")
    assert changes_since("HEAD", ["train"]) == {"train": Changes(((1, 1),))}


def test_a_conflict_is_a_change(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "other")
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    commit(repository)
    git(repository, "checkout", "-q", "main")
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 1\n"))
    commit(repository)
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "other")
    assert changes_since("HEAD", ["a.py"])["a.py"].touch(3, 7)


def test_settings_of_the_user_do_not_change_the_answer(repository: Path) -> None:
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"), ("a5 = 5\n", "a5 = 0\n"))
    for setting in ("diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.context=5", "diff.interHunkContext=9"):
        git(repository, "config", *setting.split("="))
    git(repository, "config", "color.ui", "always")
    git(repository, "config", "diff.relative", "true")
    (repository / ".gitattributes").write_text("*.py binary\n")
    assert changes_since("HEAD", ["a.py"])["a.py"].rows == ((3, 3), (5, 5))


def test_nothing_of_the_repository_is_run(repository: Path) -> None:
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho caught >> {repository}/caught\ncat\n")
    trap.chmod(0o755)
    hooks = repository / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    (repository / ".gitattributes").write_text("*.py diff=trap filter=trap\n")
    settings = [
        "core.fsmonitor",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "core.pager",
        "pager.diff",
    ]
    settings += ["filter.trap.clean", "filter.trap.process", "filter.trap.smudge"]
    for setting in settings:
        git(repository, "config", setting, str(trap))
    git(repository, "config", "filter.trap.required", "true")
    git(repository, "config", "core.hooksPath", str(hooks))
    (repository / "caught").unlink(missing_ok=True)
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    os.utime(repository / "b.py", (1, 1))
    (repository / "new.py").write_text("x = 1\n")
    assert set(changes_since("HEAD", ["a.py", "b.py", "new.py"])) == {"a.py", "new.py"}
    assert not (repository / "caught").exists()
    subprocess.run(["git", "--no-pager", "diff", "HEAD"], cwd=repository, capture_output=True, check=False)
    assert (repository / "caught").exists()  # the trap works: git by itself steps into it


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("nowhere", "there is no such revision"),
        ("--output=x", "there is no such revision"),
        ("", "there is no such revision"),
        ("main..HEAD", "git merge-base"),
    ],
)
def test_a_revision_that_does_not_exist_is_said_on_one_line(repository: Path, revision: str, words: str) -> None:
    with pytest.raises(ChangesError, match=words) as caught:
        changes_since(revision, ["a.py"])
    assert "\n" not in str(caught.value)
    assert not (repository / "x").exists()


def test_a_shallow_clone_gets_a_hint(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    commit(repository)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), str(shallow))
    monkeypatch.chdir(shallow)
    assert changes_since("HEAD", ["a.py"]) == {}
    with pytest.raises(ChangesError, match=r"shallow clone: fetch more .*fetch-depth: 0"):
        changes_since("HEAD~1", ["a.py"])


def test_a_partial_clone_fetches_nothing_and_gets_a_hint(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repository / "a.py", ("a3 = 3\n", "a3 = 0\n"))
    commit(repository)
    git(repository, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    git(tmp_path, "clone", "-q", "--filter=blob:none", repository.as_uri(), str(partial))
    monkeypatch.chdir(partial)
    assert changes_since("HEAD", ["a.py"]) == {}
    with pytest.raises(ChangesError, match=r"this clone is a partial one: run git diff"):
        changes_since("HEAD~1", ["a.py"])
    git(partial, "diff", "HEAD~1")
    assert changes_since("HEAD~1", ["a.py"]) == {"a.py": Changes(((3, 3),))}


def test_a_branch_of_the_remote_is_proposed(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repository, "branch", "develop")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", repository.as_uri(), str(clone))
    monkeypatch.chdir(clone)
    with pytest.raises(ChangesError, match=r"did you mean origin/develop\?"):
        changes_since("develop", ["a.py"])


def test_no_repository_and_no_git_are_said(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(outside)
    with pytest.raises(ChangesError, match=r"not a git repository.*needs the files to be in one"):
        changes_since("HEAD", ["a.py"])
    monkeypatch.setenv("PATH", str(outside))
    with pytest.raises(ChangesError, match="git is not installed"):
        changes_since("HEAD", ["a.py"])


def test_a_program_named_git_in_the_project_is_not_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "git").write_text("#!/bin/sh\ntouch caught\n")
    (repository / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(ChangesError, match="git is not installed"):
        changes_since("HEAD", ["a.py"])
    assert not (repository / "caught").exists()


def test_a_repository_in_a_repository_answers_for_itself(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / "c.py").write_text("x = 1\n")
    git(inner, "init", "-q", "-b", "main")
    commit(inner)
    assert changes_since("HEAD", ["a.py", "inner/c.py"]) == {}
    (inner / "c.py").write_text("x = 2\n")
    assert changes_since("HEAD", ["a.py", "inner/c.py"]) == {"inner/c.py": Changes(((1, 1),))}


def test_lines_that_look_like_headers_are_content() -> None:
    diff = b"--- o/a.py\n+++ n/a.py\n@@ -1,2 +1 @@\n--- x\n-- y\n+++ n/b.py\n@@ -9 +8 @@\n-a\n+b\n"
    assert parse_diff(diff) == {b"a.py": Changes(((1, 1), (8, 8)))}


def test_what_touches_changes() -> None:
    changes = Changes(((3, 4),), (7,))
    assert [changes.touch(first, last) for first, last in ((1, 2), (4, 5), (7, 7), (7, 8), (8, 9), (1, 9))] == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    text = "1\n2\r\n3\n4\n5\n6\n7\n8\n"
    assert [text[place.start : place.end] for place in changes.ranges(source_from_text(text))] == ["3\n4\n", ""]
    assert [text[place.start : place.end] for place in Changes(((8, 8),)).ranges(source_from_text(text))] == ["8\n"]
