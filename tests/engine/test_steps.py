"""Fixes one after the other: what is accepted adds up to what `fix_file` does, what is declined stays."""

from __future__ import annotations

import functools

import pytest

from tests.fixture_files import FixtureFile, fixture_files
from torchlint.engine.file import check_file
from torchlint.engine.fix import fix_file
from torchlint.engine.steps import Steps
from torchlint.source import source_from_text

MOST_FINDINGS = 24
"""Each step checks the file again."""

EVERY_BAD_FILE = pytest.mark.parametrize(
    "file", [file for file in fixture_files("bad.py") if len(file.expected) <= MOST_FINDINGS], ids=str
)
SOME_BAD_FILES = pytest.mark.parametrize(
    "file", [file for file in fixture_files("bad.py") if file.rule and file.rule.code in ("TL101", "TL211")], ids=str
)
NESTED = "import torch\n\nx = torch.zeros(3).cuda()\ny = torch.zeros(3).cuda()\nz = torch.ones(3).cuda()\n"


def steps_of(file: FixtureFile, text: str | None = None) -> Steps:
    """Return the steps of a fixture file, or of another text in its place, unsafe ones included."""
    check = functools.partial(check_file, settings=file.settings, rules=file.default_rules(), target=file.target)
    return Steps(file.source(text), check, unsafe=True)


@EVERY_BAD_FILE
def test_accepting_everything_is_fixing_the_file(file: FixtureFile) -> None:
    steps = steps_of(file)
    while proposal := steps.propose():
        steps.accept(proposal)
        assert steps.outcome().after == proposal.after == proposal.data.decode()
    # Lines that fixes insert at one place may stand in another order.
    assert sorted(steps.outcome().after.splitlines()) == sorted(file.fix().splitlines())


@SOME_BAD_FILES
def test_declining_everything_changes_nothing_and_comes_to_an_end(file: FixtureFile) -> None:
    steps = steps_of(file)
    offered = 0
    while proposal := steps.propose():
        offered += 1
        steps.decline(proposal)
    outcome = steps.outcome()
    assert not outcome.changed
    assert len(outcome.declined) == offered
    assert steps.propose() is None


@SOME_BAD_FILES
def test_what_was_declined_is_not_offered_again_when_the_text_moves(file: FixtureFile) -> None:
    steps = steps_of(file)
    declined = []
    for turn in range(1000):
        proposal = steps.propose()
        if proposal is None:
            break
        if turn % 2:
            steps.accept(proposal)
        else:
            declined.append(proposal.diagnostic)
            steps.decline(proposal)
    assert steps.propose() is None
    assert list(steps.outcome().declined) == declined


def test_each_proposal_begins_where_the_last_one_ended() -> None:
    (file,) = (file for file in fixture_files("bad.py") if file.rule and file.rule.code == "TL201")
    steps = steps_of(file, NESTED)
    before = NESTED
    for _ in range(3):
        proposal = steps.propose()
        assert proposal
        assert proposal.before == before
        steps.accept(proposal)
        before = proposal.after
    target = fix_file(source_from_text(NESTED), file.settings, file.default_rules(), file.target, unsafe=True)
    assert before == target.text
