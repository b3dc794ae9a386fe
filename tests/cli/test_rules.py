"""The list of what stands for the rules of other linters."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Invoke
from torchlint.maps import LINTERS


def test_map_names_a_rule_for_each_code(invoke: Invoke) -> None:
    outcome = invoke("rules", "--map", "torchfix")
    assert outcome.code == 0
    assert "TOR102  TL805  pickle-load (preview)" in outcome.out.splitlines()
    assert "TOR901  none: it is about the tests of PyTorch itself" in outcome.out.splitlines()


def test_map_names_what_is_planned(invoke: Invoke) -> None:
    planned = "numpy-in-pytorch-modules          none yet: planned as TL415 numpy-in-forward"
    assert planned in invoke("rules", "--map", "semgrep").out.splitlines()


def test_map_as_data(invoke: Invoke) -> None:
    listed = json.loads(invoke("rules", "--map", "bandit", "--output-format", "json").out)
    assert listed == [
        {
            "theirs": "B614",
            "finds": "`torch.load` that runs the code in a file",
            "code": "TL805",
            "name": "pickle-load",
            "default": "preview",
            "planned": None,
            "why": None,
        }
    ]


@pytest.mark.parametrize("linter", LINTERS)
def test_each_map_is_printed_whole(invoke: Invoke, linter: str) -> None:
    outcome = invoke("rules", "--map", linter)
    listed = [line.split("  ")[0] for line in outcome.out.splitlines()]
    assert (outcome.code, listed) == (0, [check.theirs for check in LINTERS[linter].checks])


def test_map_takes_no_rule(invoke: Invoke) -> None:
    outcome = invoke("rules", "TL805", "--map", "torchfix")
    assert outcome.code == 2
    assert "leave 'TL805' out" in outcome.err
