"""The list of what stands for the rules of other linters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from torchlint.maps import LINTERS, PLANNED
from torchlint.registry import rules
from torchlint.suppress import BUILT_IN


def test_map_names_a_rule_for_each_code(invoke: Invoke) -> None:
    outcome = invoke("rules", "--map", "torchfix")
    assert outcome.code == 0
    assert "TOR102  TL805  pickle-load (preview)" in outcome.out.splitlines()
    assert "TOR901  none: it is about the tests of PyTorch itself" in outcome.out.splitlines()


def test_map_names_what_is_planned(invoke: Invoke) -> None:
    missing = sorted(
        {check.code for linter in LINTERS.values() for check in linter.checks} - {"", *(rule.code for rule in rules())}
    )
    for code in missing:
        said = [
            f"none yet: planned as {code} {PLANNED[code]}" in invoke("rules", "--map", name).out for name in LINTERS
        ]
        assert any(said), code


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


@pytest.mark.parametrize(("code", "name"), BUILT_IN.items())
def test_what_no_rule_finds_is_explained_too(invoke: Invoke, code: str, name: str) -> None:
    outcome = invoke("rules", code)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"# {code} {name}\n\n")
    assert invoke("rules", name).out == outcome.out
    assert json.loads(invoke("rules", code.lower(), "--output-format", "json").out)["documentation"] == outcome.out


def test_the_hint_after_a_syntax_error_works(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = (\n")
    said = invoke("check", "--no-cache", tmp_path / "a.py")
    (command,) = re.findall(r"torchlint (rules \w+)  explains", said.out + said.err)
    assert invoke(*command.split()).code == 0
