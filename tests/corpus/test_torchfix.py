"""What the comparison with TorchFix says of findings and fixes that are missing, and of checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.torchfix import LESS, NOT_RUN, OK, main, missing_findings, missing_fixes


def checkout(folder: Path, files: dict[str, str]) -> Path:
    fixtures = folder / "tests" / "fixtures"
    for name, text in files.items():
        path = fixtures / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_all_that_is_expected_is_found() -> None:
    text = "import torch\ntorch.load(f)\ntorch.load(g), torch.load(h)\n"
    assert not list(missing_findings(text, "2:1 TOR102 a\n3:1 TOR102 b\n3:16 TOR102 c\n"))


def test_missing_findings_are_named() -> None:
    text = "import torch\ntorch.load(f)\n"
    assert list(missing_findings(text, "1:1 TOR102 a\n2:1 TOR901 b\n")) == [
        "row 1: TOR102 is not found as TL805",
        "row 2: TOR901 has no rule of ours",
    ]


def test_fixes_may_look_different() -> None:
    text = "import torch\nx = torch.range(0, 3)\n"
    assert not list(missing_fixes(text, "import torch\nx = torch.arange(0, 4)\n"))


def test_missing_fixes_are_named() -> None:
    text = "import torch\nx = torch.norm(y)\n"
    assert list(missing_fixes(text, "import torch\nx = torch.linalg.norm(y)\n")) == ["it keeps `x = torch.norm(y)`"]


def test_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = checkout(
        tmp_path / "good", {"a/checker/x.py": "import torch\ntorch.load(f)\n", "a/checker/x.txt": "2:1 TOR102 a"}
    )
    assert main(["--checkout", str(good)]) == OK
    bad = checkout(tmp_path / "bad", {"a/checker/x.py": "import torch\n", "a/checker/x.txt": "1:1 TOR102 a"})
    assert main(["--checkout", str(bad)]) == LESS
    assert "a/checker/x.py: row 1: TOR102 is not found as TL805" in capsys.readouterr().out


def test_without_a_checkout_it_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == NOT_RUN
    assert main(["--checkout", str(tmp_path)]) == NOT_RUN
    assert capsys.readouterr().err.startswith("NOT RUN")
