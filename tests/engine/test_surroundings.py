"""Fixes that are not safe ask the other files of their project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from torchlint.cli import run
from torchlint.diagnostic import Diagnostic
from torchlint.engine.surroundings import Surroundings
from torchlint.source import Source

FEATURES = """\
import torch
import torch.nn.functional as F


def extract_features(backbone: torch.nn.Module, loader, device):
    backbone.eval()
    features = []
    for x, _ in loader:
        features.append(F.normalize(backbone(x.to(device)), dim=1).cpu())
    return torch.cat(features)


def neighbours(backbone: torch.nn.Module, loader, device):
    return extract_features(backbone, loader, device).topk(5)
"""
PROBE = """\
import torch
import torch.nn.functional as F

from features import extract_features


def probe(backbone: torch.nn.Module, head, loader, labels, device):
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
    for _ in range(10):
        loss = F.cross_entropy(head(extract_features(backbone, loader, device)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
"""
SHOW = """\
import torch

from features import extract_features


def show(backbone: torch.nn.Module, loader, device):
    print(extract_features(backbone, loader, device).shape)
"""


Fix = Callable[..., str]


@pytest.fixture
def fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fix:
    """Return a function that applies the fixes of a file of a project, and gives what is said."""

    def apply(name: str, rules: str) -> str:
        (tmp_path / "pyproject.toml").write_text("[tool.torchlint]\n")
        run(["fix", str(tmp_path / name), "--unsafe-fixes", "--no-cache", "--apply", "--select", rules])
        captured = capsys.readouterr()
        return captured.out + captured.err

    return apply


def test_a_fix_that_another_file_speaks_against_is_refused(tmp_path: Path, fix: Fix) -> None:
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "probe.py").write_text(PROBE)
    said = fix("features.py", "TL501,TL302")
    assert "refused: probe.py, read along with this file, speaks against it" in said
    assert (tmp_path / "features.py").read_text() == FEATURES


def test_it_is_applied_where_the_others_agree(tmp_path: Path, fix: Fix) -> None:
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "show.py").write_text(SHOW)
    said = fix("features.py", "TL501")
    assert "refused" not in said
    assert "@torch.no_grad()\ndef extract_features" in (tmp_path / "features.py").read_text()


def test_safe_fixes_ask_nobody(tmp_path: Path, fix: Fix) -> None:
    (tmp_path / "other.py").write_text("import made\n")
    text = "import torch\n\nx = torch.zeros(3).cuda()\n"
    (tmp_path / "made.py").write_text(text)
    said = fix("made.py", "TL201")
    assert "refused" not in said
    assert 'torch.zeros(3, device="cuda")' in (tmp_path / "made.py").read_text()


def test_a_neighbour_that_cannot_be_parsed_says_nothing(tmp_path: Path, fix: Fix) -> None:
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "probe.py").write_text(PROBE + "\ndef (:\n")
    said = fix("features.py", "TL501")
    assert "refused" not in said
    assert "@torch.no_grad()" in (tmp_path / "features.py").read_text()


def test_a_link_to_the_project_is_the_project(tmp_path: Path, fix: Fix) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "pyproject.toml").write_text("[tool.torchlint]\n")
    (tmp_path / "there" / "features.py").write_text(FEATURES)
    (tmp_path / "there" / "probe.py").write_text(PROBE)
    (tmp_path / "here").symlink_to(tmp_path / "there")
    assert "refused: probe.py" in fix("here/features.py", "TL501,TL302")


def test_each_fix_is_asked_for_once(tmp_path: Path, fix: Fix, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    found = Surroundings.objection

    def objection(self: Surroundings, source: Source, diagnostic: Diagnostic, all_found: Sequence[Diagnostic]) -> str:
        asked.append((diagnostic.code, source.text[diagnostic.range.start : diagnostic.range.end]))
        return found(self, source, diagnostic, all_found)

    monkeypatch.setattr(Surroundings, "objection", objection)
    (tmp_path / "features.py").write_text(FEATURES)
    (tmp_path / "show.py").write_text(SHOW)
    fix("features.py", "ALL")
    assert {code for code, _ in asked} >= {"TL302", "TL501"}
    assert len(asked) == len(set(asked))
