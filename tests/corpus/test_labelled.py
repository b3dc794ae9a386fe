"""The labels of public code: well formed, and scored as their page says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import labelled
from tests.corpus.labelled import CODES, Label, LabelledFile, files, labels, main, score, text_of
from tests.repository import commit, git
from torchlint.registry import rules

CODE = "import torch\n\nfor batch in loader:\n    x = torch.zeros(3).cuda()\n"


def test_each_label_is_of_a_labelled_file_and_has_a_meaning() -> None:
    known = {(file.repository, file.commit, file.path) for file in files()}
    assert len(known) == len(files())
    assert labels().keys() <= known
    assert all(re.fullmatch("[0-9a-f]{40}", file.commit) for file in files())
    for one in (label for found in labels().values() for label in found):
        assert one.name in CODES
        assert one.verdict in ("report", "silent", "arguable")
        assert one.line > 0


def test_the_codes_are_those_of_rules() -> None:
    assert {code for codes in CODES.values() for code in codes} <= {rule.code for rule in rules()}


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([(4, "TL201")], {"hit": 1}),
        ([(5, "TL201")], {"hit": 1}),
        ([], {"missed": 1}),
        ([(6, "TL201")], {"missed": 1, "false": 1}),
        ([(4, "TL201"), (9, "TL201")], {"hit": 1}),
        ([(4, "TL201"), (20, "TL201")], {"hit": 1, "false": 1}),
        ([(4, "TL201"), (4, "TL202")], {"hit": 1, "false": 1}),
        ([(4, "TL201"), (4, "TL904")], {"hit": 1}),
    ],
)
def test_a_finding_counts_within_one_line(found: list[tuple[int, str]], outcome: dict[str, int]) -> None:
    name = "create-then-move"
    wanted = [Label(4, name, "report"), Label(9, name, "arguable"), Label(20, name, "silent")]
    counted: Counter[str] = Counter()
    for (_, kind), count in score(found, wanted).items():
        counted[kind] += count
    assert counted == outcome


def test_a_file_is_read_as_its_commit_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "owner+name"
    place.mkdir()
    (place / "a.py").write_text(CODE)
    git(place, "init", "-q")
    commit(place)
    (place / "a.py").write_text("changed since\n")
    committed = git(place, "rev-parse", "HEAD").strip()
    file = LabelledFile("one", "owner/name", committed, "a.py")
    assert text_of(file, tmp_path) == CODE.encode()
    assert text_of(LabelledFile("one", "owner/other", committed, "a.py"), tmp_path) is None
    monkeypatch.setattr(labelled, "files", lambda: [file])
    key = (file.repository, file.commit, file.path)
    monkeypatch.setattr(labelled, "labels", lambda: {key: [Label(4, "create-then-move", "report")]})
    assert main(["--checkouts", str(tmp_path)]) == 0
    assert "all                   hit    1  missed    0  false    0" in capsys.readouterr().out
    monkeypatch.setattr(labelled, "labels", lambda: {key: [Label(1, "create-then-move", "report")]})
    assert main(["--checkouts", str(tmp_path)]) == 1


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TORCHLINT_CHECKOUTS", raising=False)
    assert main([]) == 2
    assert "git clone https://github.com/" in capsys.readouterr().err
    monkeypatch.setattr(labelled, "files", lambda: files()[:1])
    assert main(["--checkouts", "nowhere"]) == 2
    assert "NOT RUN: " in capsys.readouterr().out
