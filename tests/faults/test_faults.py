"""Faults of files cost the file they concern, and never its content."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import kills
from tests.faults.expensive import NotRunError
from tests.faults.faults import CHEAP, Fault, agree
from tests.faults.run import INCOMPLETE, OK, WRONG, main


@pytest.mark.parametrize("fault", CHEAP.values(), ids=CHEAP)
def test_a_fault_is_survived(tmp_path: Path, fault: Fault) -> None:
    assert fault(tmp_path)


def test_a_few_kills_while_files_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(["--kills", "2", "--copies", "1", "--files", "24"]) in (kills.OK, kills.INCOMPLETE)
    assert "0 failures" in capsys.readouterr().out


def test_the_table_tells_what_was_survived_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(folder: Path) -> str:
        agree(1, 2)
        return "never said"

    def cannot(folder: Path) -> str:
        raise NotRunError("no such machine")

    assert main([], {"one": lambda folder: folder.name and "unharmed"}) == OK
    assert main([], {"two": fails, "three": cannot}) == WRONG
    assert main(["--only", "three"], {"two": fails, "three": cannot}) == INCOMPLETE
    words = [line.partition(" s  ")[2] for line in capsys.readouterr().out.splitlines() if " s  " in line]
    assert words == ["survived: unharmed", "FAILED: 1 is not 2", *["NOT RUN: no such machine"] * 2]
