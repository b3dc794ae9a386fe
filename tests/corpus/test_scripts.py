"""What the program about published scripts says of changes, of checkouts, and of what it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.scripts import NOT_RUN, SCRIPTS, NotRun, Record, Script, Trial, changed_statements, main, text_of
from tests.repository import commit, git

SCRIPT = Script("owner/name", "c0ffee", "train.py", 10)


@pytest.mark.parametrize("folder", ["owner/name", "owner+name", "name"])
def test_text_is_that_of_the_commit(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    git(place, "init", "-q")
    for text in ("one\n", "two\n"):
        place.joinpath("train.py").write_text(text, newline="")
        commit(place)
    script = Script("owner/name", git(place, "rev-parse", "HEAD~1").strip(), "train.py", 10)
    assert text_of(script, tmp_path) == "one\n"
    with pytest.raises(NotRun, match="no clone has it"):
        text_of(SCRIPT, tmp_path)


def test_missing_checkout_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="git clone https://github\\.com/owner/name"):
        text_of(SCRIPT, tmp_path)


def test_changed_statements_are_the_innermost_ones() -> None:
    old = "def f():\n    a(\n        1,\n    )\n    b\nc\n"
    assert changed_statements(old, old.replace("1,", "2,")) == {range(2, 5)}
    assert changed_statements(old, old.replace("b\n", "d\n").replace("c\n", "e\n")) == {range(5, 6), range(6, 7)}
    assert changed_statements(old, old) == set()


def test_every_bit_counts() -> None:
    one = Record("said", ("0x1.0p+0",), "w", frozenset({1}))
    assert one.differs_from(one) == ""
    assert one.differs_from(Record("said", ("0x1.1p+0",), "v", frozenset({2}))) == "losses, weights"
    assert one.differs_from(Record("other", ("0x1.0p+0",), "w", frozenset())) == "output"
    assert one.differs_from(Record("", (), "", frozenset(), "ValueError")) == "it fails: ValueError"


def test_only_rules_whose_changes_ran_are_at_work() -> None:
    assert Trial(SCRIPT, {"TL201": (1, 2), "TL301": (0, 1)}).rules_at_work == ["TL201"]


def test_coordinates_are_whole() -> None:
    assert len({str(script) for script in SCRIPTS}) == len(SCRIPTS)
    for script in SCRIPTS:
        assert len(script.commit) == 40
        assert script.path.endswith(".py")


def test_without_checkouts_nothing_runs_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TORCHLINT_CHECKOUTS", raising=False)
    assert main([]) == NOT_RUN
    assert "NOT RUN" in capsys.readouterr().err
    monkeypatch.setattr("tests.corpus.scripts.find_spec", lambda name: name)
    assert main(["--checkouts", str(tmp_path)]) == NOT_RUN
    assert f"{len(SCRIPTS)} not run, of {len(SCRIPTS)}" in capsys.readouterr().out
