"""The list of what stands for the rules of other linters."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Invoke
from torchlint.maps import MAPS
from torchlint.registry import rules
from torchlint.suppress import TORCHFIX_CODES


def test_map_names_a_rule_for_each_code(invoke: Invoke) -> None:
    outcome = invoke("rules", "--map", "torchfix")
    assert outcome.code == 0
    assert "TOR102  TL805  pickle-load (preview)" in outcome.out.splitlines()
    assert "TOR901  none" in outcome.out.splitlines()


def test_map_as_data(invoke: Invoke) -> None:
    listed = json.loads(invoke("rules", "--map", "bandit", "--output-format", "json").out)
    assert listed == [{"theirs": "B614", "code": "TL805", "name": "pickle-load", "default": "preview"}]


@pytest.mark.parametrize("linter", MAPS)
def test_map_names_rules_that_there_are(linter: str) -> None:
    assert set(MAPS[linter].values()) <= {rule.code for rule in rules()} | {""}


def test_map_agrees_with_comments() -> None:
    assert TORCHFIX_CODES.items() <= MAPS["torchfix"].items()


def test_map_takes_no_rule(invoke: Invoke) -> None:
    outcome = invoke("rules", "TL805", "--map", "torchfix")
    assert outcome.code == 2
    assert "leave 'TL805' out" in outcome.err
