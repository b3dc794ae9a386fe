"""The table of what other linters find is complete and true, as far as that shows without a network."""

from __future__ import annotations

import re

import pytest

from torchlint.dropped import COVERED, DROPPED
from torchlint.maps import LINTERS, PLANNED, Linter
from torchlint.registry import rules
from torchlint.report.page import counterparts
from torchlint.suppress import TORCHFIX_CODES

EVERY_LINTER = pytest.mark.parametrize("linter", LINTERS.values(), ids=LINTERS)
NAMES = {rule.code: rule.name for rule in rules()}

SIZES = {"torchfix": 18, "sonar": 9, "codeguru": 9, "dslinter": 9, "semgrep": 9, "bandit": 1, "profiler": 9}
"""How many checks about PyTorch each source lists; `python -m tests.corpus.linters` counts those that can be had."""


@EVERY_LINTER
def test_each_check_has_a_rule_or_a_reason(linter: Linter) -> None:
    assert [check.theirs for check in linter.checks if bool(check.code) == bool(check.why)] == []
    assert all(check.finds for check in linter.checks)


@EVERY_LINTER
def test_each_rule_of_ours_is_there_or_planned(linter: Linter) -> None:
    named = {check.code for check in linter.checks if check.code}
    assert named <= set(NAMES) | set(PLANNED)


def test_planned_rules_come_under_their_names() -> None:
    assert {code: NAMES[code] for code in set(PLANNED) & set(NAMES)} == {
        code: name for code, name in PLANNED.items() if code in NAMES
    }
    assert set(PLANNED) <= {code for linter in LINTERS.values() for code in linter.codes.values()}


@EVERY_LINTER
def test_checks_are_listed_once_and_in_order(linter: Linter) -> None:
    listed = [check.theirs for check in linter.checks]
    assert listed == sorted(set(listed))


def test_nothing_was_dropped() -> None:
    assert {word: len(linter.checks) for word, linter in LINTERS.items()} == SIZES


def test_map_agrees_with_comments() -> None:
    codes = LINTERS["torchfix"].codes
    assert dict(TORCHFIX_CODES) == {theirs: ours for theirs, ours in codes.items() if ours in NAMES}


def test_table_has_no_empty_cell() -> None:
    rows = [line for line in counterparts(rules()).splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows]
    assert len(rows) == sum(SIZES.values()) + 2
    assert {len(row) for row in cells} == {4}
    assert all(cell.strip() for row in cells for cell in row)


def test_what_was_dropped_does_not_come_back() -> None:
    gone = (*DROPPED, *COVERED)
    codes, names = {rule.code for rule in gone}, {rule.name for rule in gone}
    assert not codes & (set(NAMES) | set(PLANNED))
    assert not names & (set(NAMES.values()) | set(PLANNED.values()))


def test_what_is_covered_names_a_rule_that_is_there() -> None:
    assert {rule.by for rule in COVERED} <= set(NAMES)
