"""The reported bugs: well formed, and found where their place is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.corpus import reported
from tests.corpus.labelled import LabelledFile
from tests.corpus.reported import Case, cases, main
from tests.repository import commit, git
from torchlint.registry import rules

CODE = """\
import torch


def evaluate(model, loader):
    model.eval()
    for batch in loader:
        print(
            model(batch),
        )
"""
FILE = LabelledFile("one", "owner/name", "0" * 40, "a.py")


def test_each_case_is_one_place_and_names_rules() -> None:
    known = {rule.code for rule in rules()}
    places = [(case.file.repository, case.file.commit, case.file.path, case.line) for case in cases()]
    assert len(set(places)) == len(places)
    for case in cases():
        assert re.fullmatch("[0-9a-f]{40}", case.file.commit)
        assert set(case.codes) <= known
        assert case.sentence


@pytest.mark.parametrize(
    ("line", "row", "code", "is_found"),
    [
        (8, 8, "TL501", True),
        (7, 8, "TL501", True),
        (4, 8, "TL501", True),
        (4, 1, "TL501", False),
        (8, 8, "TL202", False),
        (1, 3, "TL501", True),
        (1, 4, "TL501", False),
    ],
)
def test_a_finding_counts_near_the_line_in_its_statement_or_its_function(
    line: int, row: int, code: str, is_found: bool
) -> None:
    case = Case(FILE, line, ("TL501", "TL504"), "evaluation builds a graph")
    assert case.is_found(CODE, [(row, code)]) is is_found


def test_a_program_of_python_2_has_lines_only() -> None:
    assert Case(FILE, 1, ("TL202",), "a loop").is_found("print 1\n", [(3, "TL202")])


def test_the_share_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "owner+name"
    place.mkdir()
    (place / "a.py").write_text(CODE)
    git(place, "init", "-q")
    commit(place)
    file = LabelledFile("one", "owner/name", git(place, "rev-parse", "HEAD").strip(), "a.py")
    monkeypatch.setattr(reported, "cases", lambda: [Case(file, 8, ("TL501",), "evaluation builds a graph")])
    assert main(["--checkouts", str(tmp_path)]) == 0
    assert "all      found    1  missed    0  100%" in capsys.readouterr().out
    monkeypatch.setattr(reported, "cases", lambda: [Case(file, 8, ("TL202",), "a number is read")])
    assert main(["--checkouts", str(tmp_path)]) == 1
    assert "missed  TL202" in capsys.readouterr().out
    assert main(["--checkouts", "nowhere"]) == 2
    assert "NOT RUN: " in capsys.readouterr().out


def test_without_clones_it_says_which_it_wants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TORCHLINT_CHECKOUTS", raising=False)
    assert main([]) == 2
    assert "git clone https://github.com/" in capsys.readouterr().err
