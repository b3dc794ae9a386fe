"""Places to judge are drawn from all repositories in turn, the same ones for the same seed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchlint.dev.__main__ import app
from torchlint.dev.ledger import HEADER, read
from torchlint.dev.sample import Sample, SampleError, draw

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FINDS = "import numpy as np\nimport torch\n\na = torch.tensor(np.zeros(3))\nb = torch.tensor(np.ones(3))\n"
HOT = "import torch\n\ndef train(model, loader):\n    for x in loader:\n        model(x).sum().backward()\n"
COLD = "import torch\n\nprint(torch.__version__)\n"
NO = "import torch, numpy\n\ntensor = (\n"


@pytest.fixture
def checkouts(tmp_path: Path) -> list[Path]:
    """Two exports of repositories."""
    for name in ("one+alpha", "two+beta"):
        folder = tmp_path / name
        (folder / "tests").mkdir(parents=True)
        (tmp_path / f"{name}.sha").write_text(f"{COMMIT}\n")
        for path, text in (
            ("finds.py", FINDS),
            ("tests/finds.py", FINDS),
            ("hot.py", HOT),
            ("cold.py", COLD),
            ("no.py", NO),
        ):
            (folder / path).write_text(text)
    return [tmp_path / "one+alpha", tmp_path / "two+beta"]


def drawn(checkouts: list[Path], **options: int) -> Sample:
    """Return a sample of arrays that are copied."""
    given = {"findings": 20, "silent": 20, "seed": 0, **options}
    return draw("tensor-copies-ndarray", checkouts, None, **given)


def test_findings_and_hot_files_without_any_are_drawn_but_not_from_tests(checkouts: list[Path]) -> None:
    sample = drawn(checkouts)
    places = {(place.repository, place.path, place.line) for place in sample.places}
    repositories = ("one/alpha", "two/beta")
    assert places == {(r, *p) for r in repositories for p in (("finds.py", 4), ("finds.py", 5), ("hot.py", None))}
    assert (sample.findings, sample.repositories) == (4, 2)


def test_repositories_take_turns_and_a_seed_decides(checkouts: list[Path]) -> None:
    sample = drawn(checkouts, findings=2, silent=0)
    assert {place.repository for place in sample.places} == {"one/alpha", "two/beta"}
    assert sample == drawn(checkouts, findings=2, silent=0)
    assert len({drawn(checkouts, findings=2, silent=0, seed=seed).places for seed in range(8)}) > 1


def test_files_that_the_rule_looks_at_are_drawn_first(checkouts: list[Path]) -> None:
    for checkout in checkouts:
        (checkout / "looked_at.py").write_text(HOT + "\nimport numpy as np\nsize = torch.tensor([1])\n")
    for seed in range(4):
        sample = drawn(checkouts, findings=0, silent=2, seed=seed)
        assert [place.path for place in sample.places] == ["looked_at.py", "looked_at.py"]


def test_what_is_judged_is_not_drawn_again(checkouts: list[Path], tmp_path: Path) -> None:
    ledger = tmp_path / "tensor-copies-ndarray.tsv"
    row = f"one/alpha\t{COMMIT}\tfinds.py\t4\tfinding\ttrue\tread"
    ledger.write_text("\t".join(HEADER) + f"\n{row}\n")
    sample = draw("tensor-copies-ndarray", checkouts, read(ledger), findings=20, silent=0, seed=0)
    assert len(sample.places) == 3
    assert sample.findings == 4


def test_a_row_lacks_only_the_verdict_and_the_sentence(checkouts: list[Path], tmp_path: Path) -> None:
    rows = [place.row().split("\t") for place in drawn(checkouts).places]
    ledger = tmp_path / "some-rule.tsv"
    judged = ["\t".join((*row[:5], "true", "read")) for row in rows]
    ledger.write_text("\n".join(("\t".join(HEADER), *judged)) + "\n")
    assert read(ledger).count(is_finding=True) == 4
    assert all(row[1] == COMMIT and row[5] == "?" for row in rows)


def test_the_commit_of_a_checkout_is_asked_of_git(tmp_path: Path) -> None:
    folder = tmp_path / "three+gamma"
    folder.mkdir()
    (folder / "finds.py").write_text(FINDS)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert {place.commit for place in drawn([folder]).places} == {head}


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match="a checkout of a repository is expected"):
        drawn([tmp_path])


def test_the_command_prints_rows_and_says_how_many_there_are(
    checkouts: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ledger-sample", "tensor-copies-ndarray", *map(str, checkouts), "--findings", "1", "--silent", "1"]
    app.main(arguments, standalone_mode=False)
    printed = capsys.readouterr()
    assert printed.err.endswith("findings in 2 repositories\n")
    assert [line.split("\t")[4] for line in printed.out.splitlines()] == ["finding", "silent"]
    with pytest.raises(SystemExit) as unknown:
        app.main(["ledger-sample", "no-such-rule", str(checkouts[0])])
    assert unknown.value.code == 1
    assert "no-such-rule" in capsys.readouterr().err
