from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from torchlint.harness.verify.blame import bisect
from torchlint.harness.verify.changes import collect
from torchlint.harness.verify.project import find_project
from torchlint.harness.verify.speed import Speed


@pytest.mark.parametrize("culprit", range(7))
def test_bisect_finds_one_culprit(culprit: int) -> None:
    assert bisect(range(7), lambda some: culprit in some) == [culprit]


def test_bisect_finds_what_fails_only_together() -> None:
    asked = []

    def is_bad(some: Sequence[int]) -> bool:
        asked.append(some)
        return 1 in some and 6 in some

    assert bisect(range(8), is_bad) == [1, 6]


def test_speed_of_few_runs_is_a_range() -> None:
    speed = Speed.of([2.0, 3.0], [1.0, 1.0])
    assert str(speed) == "2.45x (range of 2 2.00 to 3.00)"
    assert Speed.of([1.0] * 5, [2.0] * 5).slower
    assert "95 % interval" in str(Speed.of([2.0] * 5, [1.0] * 5))


def test_each_fix_can_be_left_out_alone(project: Path) -> None:
    lines = ["import torch", *(f'x{i} = torch.zeros({i + 1}).to("cuda")' for i in range(3))]
    same = [
        "for i in range(3):",
        '    y = torch.zeros(3).to("cuda")',
        "for j in range(3):",
        '    y = torch.zeros(3).to("cuda")',
    ]
    (project / "train.py").write_text("\n".join([*lines, *same]) + "\n")
    fixes = collect(["train.py"], {}, unsafe=True, isolated=False)
    assert [change.row for change in fixes.changes] == [2, 3, 4, 6, 8]
    for change in fixes.changes:
        data = fixes.without([change])[project / "train.py"].decode().splitlines()
        assert [row for row, line in enumerate(data, start=1) if ".to(" in line] == [change.row]
        only = fixes.only([change])[project / "train.py"].decode().splitlines()
        assert [row for row, line in enumerate(only, start=1) if "device=" in line] == [change.row]


def test_what_git_ignores_is_not_copied(project: Path, tmp_path: Path) -> None:
    for name in ("data/big.bin", ".git/config", "__pycache__/x.pyc", "sub/deep.py", "model.ckpt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    (project / "link.py").symlink_to("train.py")
    found = find_project(["train.py"], [], [])
    found.copy_to(tmp_path / "copy")
    names = {
        path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*") if not path.is_dir()
    }
    assert names == {".gitignore", "link.py", "pyproject.toml", "sub/deep.py", "torch/__init__.py", "train.py"}
    assert (tmp_path / "copy" / "link.py").is_symlink()


def test_the_project_is_found_from_a_folder_in_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    found = find_project([".."], [], [])
    assert (found.root, found.workdir) == (project, project / "sub")
